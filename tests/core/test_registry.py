"""The registry of scores: what an entry says, and what may be registered."""

import re

import pytest

from uetrust.core.registry import Registry


def test_a_page_may_be_run_before_and_after_its_module_but_two_modules_may_not_share_a_name():
    def of(module):
        def f(x: float) -> float:
            return x

        f.__module__ = module
        return f

    for first, second in (("__main__", "m"), ("m", "__main__"), ("m", "m")):
        r = Registry()
        for m in (first, second):
            r.add(of(m), kind="ue", unit="", cite="test")
        assert r["f"].fn.__module__ == second
    r = Registry()
    r.add(of("m"), kind="ue", unit="", cite="test")
    with pytest.raises(ValueError, match="already registered by m"):
        r.add(of("n"), kind="ue", unit="", cite="test")


# The registry
def entries():
    import importlib
    import pkgutil

    import uetrust

    for m in pkgutil.walk_packages(uetrust.__path__, "uetrust."):
        importlib.import_module(m.name)
    from uetrust.core.registry import reg

    return reg


@pytest.mark.parametrize(
    "name", sorted(n for n, e in entries().items() if e.fn.__module__.startswith("uetrust."))
)
def test_every_entry_says_what_it_measures_and_where_it_comes_from(name):
    e = entries()[name]
    assert e.unit.strip() and re.search(r"[A-Z].*\b(19|20)\d\d\b", e.cite), (
        f"{name}: unit {e.unit!r}, cite {e.cite!r}"
    )
    assert e.sign in (-1, 0, 1) and e.cost in ("cpu", "gpu", "net") and (e.kind != "nlg" or e.dim)
    assert e.summary.endswith((".", ")", "?"))


def test_a_parent_is_a_score_of_the_same_kind():
    for name, entry in entries().items():
        assert not entry.parent or entries()[entry.parent].kind == entry.kind, name


def test_the_registry_is_not_empty():
    assert "auroc" in entries()
