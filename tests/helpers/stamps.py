"""Stamps of pages: a page is not executed again while all that decides what it gives is as it was.

`tests/stamps.json` holds the fingerprint of each page when it was last green; a run of the tests writes it.
"""

import ast
import hashlib
import json
import os
import re
from functools import cache
from pathlib import Path

from tests.helpers.paths import ROOT

KEPT = ROOT / "tests" / "stamps.json"
ALWAYS = "pins/constraints.txt", "settings.ini"  # What every page may depend on
OF_TESTS = KEPT.name, "test_seconds.csv"  # What a run of the tests writes
FACE = "uetrust.cli.public"  # Its strings say what `from uetrust import ...` may load, not what it loads
FACE_TABLE = re.compile(r"^(?:_LIBRARY|PUBLIC) = (?:_LIBRARY \| )?(\{.*?^\})", re.M | re.S)
NO_PARTS = "uetrust", "data", "runs", "docs"  # Folders that a page depends on by a rule of their own


def _module_files(root):
    "Module -> its file"
    named = {path.relative_to(root).with_suffix("").parts: path for path in (root / "uetrust").rglob("*.py")}
    files = {".".join(parts).removesuffix(".__init__"): path for parts, path in named.items()}
    return {name: path for name, path in sorted(files.items()) if not name.endswith("_modidx")}


def absolute_imports(code, module, is_package=False):
    "Relative imports with their whole names"
    parts = module.split(".")

    def whole(found):
        base = parts[: len(parts) - len(found[2]) + is_package]
        return f"{found[1]}from {'.'.join([*base, *filter(None, [found[3]])])} import"

    return re.sub(r"^( *)from (\.+)([\w.]*) import", whole, code, flags=re.M)


@cache
def _said(code):
    "Names that code may mean a module by, and those that it takes from `uetrust` itself"
    modules, public = set(), set()
    for node in ast.walk(ast.parse(code)):
        if isinstance(node, ast.Import):
            modules.update(alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            names = [alias.name for alias in node.names]
            modules.update([node.module, *(f"{node.module}.{name}" for name in names)])
            public.update(names if node.module == "uetrust" else [])
        elif isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
            public.update([node.attr] if node.value.id == "uetrust" else [])
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and "." in node.value:
            modules.update([node.value, f"uetrust.{node.value}"])
    return modules, public


@cache
def files_of(part):
    "A file, or the files of a folder"
    if part.is_file():
        return {part} - {part.parent / name for name in OF_TESTS}
    found = (path for path in part.rglob("*") if path.is_file() and path.name[0] != ".")
    return {path for path in found if "__pycache__" not in path.parts and path.name not in OF_TESTS}


def page_code(page):
    cells = json.loads(page.read_text(encoding="utf-8"))["cells"]
    sources = ["".join(cell["source"]) for cell in cells if cell["cell_type"] == "code"]
    return "\n".join(re.sub(r"^[#%!].*$", "", source, flags=re.M) for source in sources), sources


class Tree:
    "The files of a checkout, and which of them a page can reach"

    def __init__(self, root):
        self.root, self.modules, self.digests = root, _module_files(root), {}
        self.texts = {name: path.read_text(encoding="utf-8") for name, path in self.modules.items()}
        self.data = sorted(path for path in (root / "data").glob("*") if path.name[0] != ".")
        self.parts = sorted(p for p in root.glob("*") if p.name[0] != "." and p.name not in NO_PARTS)
        self.pages = sorted(p for p in (root / "nbs").rglob("*.ipynb") if p.name[0] != ".")
        self.mentions = {name: self._mentioned(text) for name, text in self.texts.items()}
        named = set().union(*self.mentions.values())
        self.unnamed = {
            part for part in self.data if part not in named
        }  # Whoever reads them makes their names
        self.face = self._face()
        self.needs = {name: self._needs(name) for name in self.modules}

    def _face(self):  # Public name -> its module
        parts = FACE_TABLE.findall(self.texts.get(FACE, ""))
        public = {module: names for part in parts for module, names in ast.literal_eval(part).items()}
        return {name: f"uetrust.{module}" for module, names in public.items() for name in names.split()}

    def _mentioned(self, text):
        "Parts of data that a text names, and `nbs` where it names that"
        found = {part for part in self.data if part.stem in text}
        return found | ({self.root / "nbs"} if '"nbs"' in text else set())

    def _named(self, code):
        "Modules that code imports or names"
        modules, public = _said(code)
        return (modules | {self.face[name] for name in public & self.face.keys()}) & self.modules.keys()

    def _needs(self, name):
        is_package = self.modules[name].name == "__init__.py"
        code = absolute_imports(self.texts[name], name, is_package)
        found = self._named(FACE_TABLE.sub("", code))
        if "__path__" in code:  # A package that loads what stands in its folder
            found |= {other for other in self.modules if other.startswith(f"{name}.")}
        return found | {name.rsplit(".", i)[0] for i in range(1, name.count(".") + 1)}

    def reached(self, code):
        "Modules behind code"
        ahead, found = [*self._named(code)], set()
        while ahead:
            name = ahead.pop()
            if name not in found:
                found.add(name)
                ahead += self.needs[name] - found
        return found

    def files(self, code):
        "Files that decide what code gives, and the names of pages where it may list them"
        modules = self.reached(code)
        named = self._mentioned(code).union(self.unnamed, *(self.mentions[name] for name in modules))
        parts = [part for part in named if part.name != "nbs"]
        parts += [part for part in self.parts if f'"{part.name}"' in code]
        paths = {self.modules[name] for name in modules} | {self.root / name for name in ALWAYS}
        paths = paths.union(*map(files_of, parts))
        return sorted(paths), self.pages if self.root / "nbs" in named else []

    def digest(self, path):
        if path not in self.digests:
            self.digests[path] = hashlib.sha256(path.read_bytes()).hexdigest()
        return self.digests[path]

    def fingerprint(self, page):
        "Of a page: its code, and every file that decides what it gives"
        code, sources = page_code(page)
        paths, pages = self.files(code)
        parts = [f"{path.relative_to(self.root)} {self.digest(path)}" for path in paths if path.exists()]
        said = json.dumps([sources, parts, [os.path.relpath(path, self.root) for path in pages]])
        return hashlib.sha256(said.encode()).hexdigest()[:16]


@cache
def tree():
    return Tree(ROOT)


def kept():
    return json.loads(KEPT.read_text()) if KEPT.exists() else {}


def key(page, what=""):
    "Under which a stamp is kept: the page, and how it ran where it runs in several ways"
    return f"{Path(page).relative_to(ROOT).as_posix()} {what}".strip()


def is_green(page, what=""):
    "Whether nothing has changed since the page ran green"
    return kept().get(key(page, what)) == tree().fingerprint(page)


def keep(stamps):
    "Keep the stamps of pages that ran green; pages that are gone lose theirs"
    found = {name: stamp for name, stamp in (kept() | stamps).items() if (ROOT / name.split()[0]).exists()}
    text = json.dumps(dict(sorted(found.items())), indent=0) + "\n"
    if not KEPT.exists() or KEPT.read_text() != text:
        KEPT.write_text(text)
