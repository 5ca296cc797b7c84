"""What holds for the project as a whole: imports, registry, citation, nothing of one machine in the files."""

import json
import re
import subprocess
import sys
from datetime import date

import pytest
import yaml

from tests.helpers.paths import ROOT

# Importing
TORCH = (
    "models",
    "generation",
    "statistics",
    "dev.training",
    "dev.bench.models",
    "dev.bench.stages",
)  # Where torch lives
JUPYTER = ("cli.forked",)  # Where Jupyter lives
HEAVY = f"tuple('uetrust.' + wing for wing in {TORCH + JUPYTER})"
NAMES = "[m.name for m in pkgutil.walk_packages(uetrust.__path__, 'uetrust.')]"
LIGHT = f"[name for name in {NAMES} if not name.startswith({HEAVY})]"
EVERYTHING = f"import importlib, pkgutil, uetrust; [importlib.import_module(m) for m in {LIGHT}]"


def python(src):
    return subprocess.run(
        [sys.executable, "-c", src], cwd=ROOT, capture_output=True, text=True, check=True
    ).stdout


def loaded(src):
    "Modules that a program loads"
    return set(python(f"{src}; import sys; print(*sys.modules)").split())


def test_all_modules_need_few_others():
    "Beyond numpy and pandas, which every table needs; counted, because a slow machine must not decide."
    more = loaded(EVERYTHING) - loaded("import numpy, pandas")
    assert len([name for name in more if not name.startswith("uetrust")]) < 160


def test_the_package_alone_loads_next_to_nothing():
    assert len(loaded("import uetrust") - loaded("pass")) < 60


def test_nothing_heavy_is_loaded():
    heavy = {
        "torch",
        "transformers",
        "scipy",
        "sklearn",
        "matplotlib",
        "seaborn",
        "papermill",
        "IPython",
        "fastcore",
        "nbdev",
    }
    assert heavy & loaded(EVERYTHING) == set()


# Citation, licence, changes
def cff():
    return yaml.safe_load((ROOT / "CITATION.cff").read_text())


def test_citation_is_complete():
    c = cff()
    assert {
        "cff-version",
        "message",
        "title",
        "authors",
        "version",
        "date-released",
        "license",
        "references",
    } <= set(c)
    assert (c["cff-version"], c["title"], c["authors"], c["license"]) == (
        "1.2.0",
        "uetrust",
        [{"name": "uetrust authors"}],
        "Apache-2.0",
    )
    assert isinstance(c["date-released"], date)


def test_the_five_papers_are_cited():
    refs = cff()["references"]
    assert [(r["authors"][0]["family-names"], r["year"], len(r["authors"])) for r in refs] == [
        ("He", 2024, 8),
        ("Jain", 2023, 7),
        ("Jia", 2023, 4),
        ("Liu", 2024, 3),
        ("Opitz", 2024, 1),
    ]
    assert all(
        {"type", "title", "url"} <= set(r)
        and all({"given-names", "family-names"} == set(a) for a in r["authors"])
        for r in refs
    )
    printed = (ROOT / "data" / "published" / "README.md").read_text()
    assert [r["title"] for r in refs if r["title"].lower() not in printed.lower()] == []


def test_the_metadata_of_the_archive_are_those_of_the_citation_file():
    c, archive = cff(), json.loads((ROOT / ".zenodo.json").read_text(encoding="utf-8"))
    shared = dict(
        title="title", upload_type="type", description="abstract", keywords="keywords", notes="message"
    )
    shared |= dict(version="version", license="license", creators="authors")
    assert {ours: archive.pop(ours) for ours in shared} == {ours: c[name] for ours, name in shared.items()}
    assert archive.pop("publication_date") == str(c["date-released"])
    related = archive.pop("related_identifiers")
    assert [one["identifier"] for one in related] == [paper["url"] for paper in c["references"]]
    assert {(one["relation"], one["scheme"]) for one in related} == {("cites", "url")}
    assert archive == dict(access_right="open", language="eng")


def test_the_bibtex_entry_is_the_same_wherever_it_is_shown(capsys):
    from uetrust.cli.cli import main

    c = cff()
    (author,) = [author["name"] for author in c["authors"]]
    fields = dict(
        title=c["title"], author=f"{{{author}}}", year=c["date-released"].year, version=c["version"]
    )
    lines = ",\n".join(f"  {name} = {{{value}}}" for name, value in fields.items())
    entry = f"@software{{uetrust,\n{lines}\n}}\n"
    assert main(["--cite"]) == 0
    assert capsys.readouterr().out == entry
    assert f"```bibtex\n{entry}```" in (ROOT / "README.md").read_text()


def test_one_version_everywhere():
    import tomllib

    import uetrust

    newest = re.search(r"^## (\S+) - (\d{4}-\d\d-\d\d)$", (ROOT / "CHANGELOG.md").read_text(), re.M)
    assert (
        newest.groups() == (uetrust.__version__, str(cff()["date-released"]))
        and str(cff()["version"]) == uetrust.__version__
    )
    assert tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["license"] == cff()["license"]
    assert (
        "Apache License" in (ROOT / "LICENSE").read_text()
        and "END OF TERMS AND CONDITIONS" in (ROOT / "LICENSE").read_text()
    )


def test_every_release_starts_with_the_numbers_that_changed():
    parts = re.split(r"^## .*$", (ROOT / "CHANGELOG.md").read_text(), flags=re.M)[1:]
    assert [p for p in parts if re.findall(r"^### (.*)$", p, re.M)[:1] != ["Numbers changed"]] == []


# Nothing of one machine
def files():
    "What is or would be tracked; without git, everything outside hidden and derived folders"
    if (ROOT / ".git").exists():
        names = subprocess.run(
            ["git", "ls-files", "-co", "--exclude-standard", "-z"],
            cwd=ROOT,
            capture_output=True,
            text=True,
            check=True,
        ).stdout.split("\0")
        return [ROOT / n for n in names if n and (ROOT / n).is_file()]
    return [
        p
        for p in ROOT.rglob("*")
        if p.is_file()
        and not any(
            s[0] == "." or s in ("runs", "_build") or s.endswith(".egg-info")
            for s in p.relative_to(ROOT).parts
        )
    ]


def readable(p):
    try:
        return p.read_text()
    except UnicodeDecodeError:
        return ""


OF_A_MACHINE = re.compile(
    r"(?<![\w.])/(?:home|Users|root|private/var)" + r"/\w|\b[A-Z]:\\{1,2}(?:Users|Windows|Program)"
)
REGISTRY = re.compile(
    "|".join(
        re.escape(a + b)
        for a, b in (
            ("pypi", ".org"),
            ("python", "hosted.org"),
            ("registry.npm", "js.org"),
            ("download.py", "torch.org"),
            ("--index", "-url"),
            ("--extra-index", "-url"),
        )
    )
)


@pytest.mark.parametrize(
    "what", ["/home" + "/me/x", '"/Users' + '/me"', "C:" + "\\Users\\me", "C:" + "\\\\Users", "/root" + "/x"]
)
def test_paths_of_a_machine_are_recognised(what):
    assert OF_A_MACHINE.search(what)


@pytest.mark.parametrize(
    "what", ["nbs/home" + "/x", "https://x.org/home" + "/", "(C:" + "\\alpha)", "a/root" + "/b"]
)
def test_other_text_is_no_path_of_a_machine(what):
    assert not OF_A_MACHINE.search(what)


def test_files_hold_no_path_of_a_machine():
    found = {str(p.relative_to(ROOT)): m[0] for p in files() if (m := OF_A_MACHINE.search(readable(p)))}
    assert found == {}


def test_files_name_no_package_registry():
    found = {str(p.relative_to(ROOT)): m[0] for p in files() if (m := REGISTRY.search(readable(p)))}
    assert found == {}


def test_the_search_reads_the_notebooks():
    assert {".ipynb", ".py", ".md", ".csv", ".toml", ".cff"} <= {p.suffix for p in files()}
