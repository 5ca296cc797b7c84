"""The registry with every score in it: every module of scores is found on disk."""

import importlib
import pkgutil

import pytest

from uetrust.statistics.scores import load_scores

reg = load_scores()


@pytest.mark.parametrize("package", ["ue", "nlg"])
def test_every_module_of_scores_is_found(package):
    "A file of the folder is enough; there is no list to keep."
    at = importlib.import_module(f"uetrust.{package}")
    found = {e.fn.__module__ for e in reg.values() if e.fn.__module__.startswith(f"{at.__name__}.")}
    every = pkgutil.walk_packages(at.__path__, f"{at.__name__}.")
    assert found == {module.name for module in every if not module.ispkg}
