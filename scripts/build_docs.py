"""build_docs.py [WORK]: the notebooks of nbs/ as a site in WORK/html (default docs/_build), offline.

A warning or an outside request fails it.
"""

import ast
import html
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from html.parser import HTMLParser
from pathlib import Path
from types import MappingProxyType

import nbformat
from nbformat.v4 import new_markdown_cell

from uetrust.core.docstrings import described

ROOT = Path(__file__).resolve().parents[1]
RUNS = (
    "> `make reproduce` runs this page once for every set of parameters "
    "and keeps the executed copies under `runs/`."
)

PLAYGROUND = """# Playground

What moves a prediction-rejection ratio (PRR), and what only seems to.
Every number equals that of the Python package.

```{raw} html
<div data-playground></div>
<noscript><p>The panels need JavaScript.</p></noscript>
```
"""


# Notebooks
def pages(nbs):
    found = [path.relative_to(nbs) for path in sorted(nbs.rglob("*.ipynb"))]
    return [path for path in found if not any(part[0] in "._" for part in path.parts)]


def directives(src):
    return {m[1]: m[2].strip() for m in re.finditer(r"^#\|\s*(\w+):?(.*)$", src, re.M)}


def bare(src):
    return re.sub(r"^#\|.*\n?", "", src, flags=re.M).strip()


def module(nb):
    found = (directives(cell.source) for cell in nb.cells)
    return next((said["default_exp"] for said in found if "default_exp" in said), None)


def is_exported(cell):
    return cell.cell_type == "code" and bool({"export", "exports"} & set(directives(cell.source)))


def exported(nb):
    return [cell for cell in nb.cells if is_exported(cell)]


def public(src):
    kinds = (ast.FunctionDef, ast.ClassDef)
    return [node for node in ast.parse(src).body if isinstance(node, kinds) and node.name[0] != "_"]


def target(node, mod):  # Sphinx folds case: PRR and prr must differ
    return f"{'class' if isinstance(node, ast.ClassDef) else 'def'}.uetrust.{mod}.{node.name}"


# From the source of an exported cell to the page of its functions
def md(text):
    "Plain text as Markdown for a table: `code` stays code, everything else is literal"
    parts = re.split(r"(`[^`]+`)", text or "")
    code = [part.replace("|", r"\|") for part in parts[1::2]]
    plain = [re.sub(r"([\\*_$<>|\[\]#~])", r"\\\1", part) for part in parts[::2]]
    return "".join(piece for pair in zip(plain, [*code, ""], strict=True) for piece in pair)


def prose(docstring):
    "A docstring as Markdown: sections get a bold title, examples stay code"
    parts = re.split(r"^(\w[\w ]*)\n-+\n", docstring or "", flags=re.M)
    found = [" ".join(md(line) for line in parts[0].strip().splitlines())]
    for title, text in zip(parts[1::2], parts[2::2]):
        body = f"```\n{text.strip()}\n```" if ">>>" in text else md(" ".join(text.split()))
        found.append(f"**{title}**\n\n{body}")
    return "\n\n".join(found)


def row(parameter):  # (as written, meaning)
    kind = f":{parameter.annotation}" if parameter.annotation else ""
    default = "" if parameter.default is None else f"={parameter.default}"
    return f"`{parameter.name}{kind}{default}`", parameter.comment


def parameters(fn, src):
    "(as written, meaning) of each parameter of `fn`, then of what it returns"
    found, result = described(fn, src)
    rows = [row(parameter) for parameter in found if parameter.name not in ("self", "cls")]
    if result.annotation or result.comment:
        rows.append(("returns" + (f" `{result.annotation}`" if result.annotation else ""), result.comment))
    return rows


def method(node, src):
    "(call or property, what it does or returns)"
    rows = parameters(node, src)
    result = next((meaning for name, meaning in rows if name.startswith("returns")), "")
    is_property = any(ast.unparse(d).endswith("property") for d in node.decorator_list)
    args = ", ".join(name.strip("`") for name, _ in rows if name[0] == "`")
    return f"`.{node.name}{'' if is_property else f'({args})'}`", ast.get_docstring(node) or result


def members(cls, src, bases=MappingProxyType({})):
    "Fields (or the parameters of `__init__`) and methods of a class; `bases` has those of private classes"
    inherited = [row for base in cls.bases for row in bases.get(ast.unparse(base), [])]
    functions = [node for node in cls.body if isinstance(node, ast.FunctionDef)]
    own = [method(function, src) for function in functions if function.name[0] != "_"]
    return [*map(row, described(cls, src)[0]), *inherited, *own]


def private_classes(nb):
    "Members of the private classes of a notebook, by name: a public class that is built on one has them"
    found = {}
    for src in (bare(cell.source) for cell in exported(nb)):
        for node in ast.parse(src).body:
            if isinstance(node, ast.ClassDef) and node.name[0] == "_":
                found[node.name] = members(node, src, found)
    return found


def entry(node):
    "What a registry decorator says: kind, unit and where it comes from"
    for decorator in node.decorator_list:
        given = [k for k in getattr(decorator, "keywords", []) if isinstance(k.value, ast.Constant)]
        said = {k.arg: k.value.value for k in given}
        if "cite" in said:
            facts = [f"Registered as `{ast.unparse(decorator.func)}`", f"unit {md(said.get('unit', ''))}"]
            facts += [f"judges {md(said['dim'])}"] if said.get("dim") else []
            cite = md(said["cite"]).replace("\\_", "_")
            linked_cite = re.sub(r"(https?://[^\s,;]*[\w/])", r"<\1>", cite)
            return f"{', '.join(facts)}. {linked_cite}."


def api(src, mod, bases=MappingProxyType({})):
    "Markdown for every public function and class of a cell"

    def one(node):
        rows = members(node, src, bases) if isinstance(node, ast.ClassDef) else parameters(node, src)
        lines = "\n".join(f"| {md(name)} | {md(meaning)} |" for name, meaning in rows)
        table = f"{{.params}}\n| Name | Meaning |\n|:--|:--|\n{lines}" if rows else ""
        head = f"({target(node, mod)})=\n### {md(node.name)}"
        return "\n\n".join(filter(None, [head, prose(ast.get_docstring(node)), entry(node), table]))

    return [one(node) for node in public(src)]


# From a notebook to a page
def linked(text, names, here):
    "Backticked names of the library become links, outside code blocks, links and headings"

    def one(match):
        at = names.get(match[1], {})
        to = at.get(here) or (len(at) == 1 and next(iter(at.values())))
        return f"[{match[0]}](#{to})" if to else match[0]

    parts = re.split(r"(^```.*?^```|^#.*?$|\[[^\]]*\]\([^)]*\)|\$\$.*?\$\$)", text, flags=re.M | re.S)
    name = r"(?<!`)`(\w+)(?:\([^`]*\))?`(?!`)"
    return "".join(part if i % 2 else re.sub(name, one, part) for i, part in enumerate(parts))


def opening(src, mod):
    "The title cell: `> summary` becomes the lead paragraph, whatever else it says stays"
    title, *rest = src.split("\n")
    end = next((i for i, line in enumerate(rest) if line.strip() and not line.startswith(">")), len(rest))
    lead = " ".join(line.lstrip("> ") for line in rest[:end]).strip()
    parts = [title, lead and "{.lead}\n" + lead, mod and f"Module `uetrust.{mod}`"]
    return "\n\n".join(filter(None, [*parts, "\n".join(rest[end:]).strip()]))


def only_imports(src):
    return all(isinstance(node, (ast.Import, ast.ImportFrom)) for node in ast.parse(src).body)


def live_panels(cell):
    "Panels of the playground in place of their pictures, which show where a browser runs no script"
    panels = [out for out in cell.get("outputs", []) if is_panel(out)]
    cell["outputs"] = [out for out in cell.get("outputs", []) if not is_panel(out)]
    for data in (out["data"] for out in panels):
        state = html.escape(data["text/plain"].partition("#")[2])
        yield new_markdown_cell(
            f'```{{raw}} html\n<div data-playground="{state}">{data["image/svg+xml"]}</div>\n```'
        )


def is_panel(output):
    return output.get("data", {}).get("text/plain", "").startswith("playground.html#")


def cells(cell, mod, names, bases):
    "The cells of the page that stand for a cell of the notebook"
    cell.metadata = {key: value for key, value in cell.metadata.items() if key == "tags"}
    if cell.cell_type != "code":
        return [new_markdown_cell(linked(cell.source, names, mod))]
    said, cell.source = directives(cell.source), bare(cell.source)
    if not cell.source or {"hide", "default_exp", "exporti"} & set(said):
        return []
    if not {"export", "exports"} & set(said):
        if "hide_input" in said:  # What it shows is text of the page: its links lead to pages
            cell.metadata |= {"tags": ["remove-input"], "mystnb": {"markdown_format": "myst"}}
        return [cell, *live_panels(cell)]
    if only_imports(cell.source):
        return []
    cell.metadata["tags"] = ["hide-input"]
    return [*map(new_markdown_cell, api(cell.source, mod, bases)), cell]


def convert(nb, names, where=Path("page.ipynb")):
    "A notebook as the page that Sphinx reads"
    mod = module(nb)
    first = next((i for i, cell in enumerate(nb.cells) if cell.cell_type == "markdown"), None)
    if first is None or not nb.cells[first].source.startswith("# "):
        raise ValueError(f"{where}: the first text must be the title (# ...)")
    head = [opening(nb.cells[first].source, mod)]
    if where.parts[0] == "experiments":
        shown = any(cell.get("outputs") for cell in nb.cells)
        head.append(RUNS + ("" if shown else " It is stored without outputs."))
    rest = nb.cells[:first] + nb.cells[first + 1 :]
    bases = private_classes(nb)
    pages = (new for cell in rest for new in cells(cell, mod, names, bases))
    nb.cells = [*map(new_markdown_cell, head), *pages]
    for i, cell in enumerate(nb.cells):
        cell["id"] = f"c{i}"
    nb.metadata = {
        "kernelspec": {"name": "python3", "display_name": "Python"},
        "language_info": {"name": "python"},
    }
    return nb


CAPTIONS = dict(
    ue="Uncertainty estimation",
    nlg="Quality metrics",
    cli="Command line",
    dev="Development",
    he2024="He et al. 2024",
    ice="ICE",
    fflm="FFLM",
)


def caption(group):
    "'04_evaluation' is Evaluation; 'lessons/1_basics' is Lessons: basics"
    if not group:
        return "Start here"
    top, *rest = [re.sub(r"^\d+_", "", part) for part in group.split("/")]
    return ": ".join([CAPTIONS.get(top, top.capitalize()), *(CAPTIONS.get(part, part) for part in rest)])


def contents(found):
    "One hidden table of contents per folder: pages beside the index, lessons, experiments, then the wings"
    groups = {}
    for path in found:
        if path.name != "index.ipynb":
            groups.setdefault("/".join(path.parts[:-1]), []).append(path.with_suffix("").as_posix())
    order = sorted(
        groups, key=lambda g: (g != "", not g.startswith("lessons"), not g.startswith("experiments"), g)
    )
    return [
        f"```{{toctree}}\n:hidden:\n:caption: {caption(g)}\n\n" + "\n".join(groups[g]) + "\n```"
        for g in order
    ]


def public_names(books):
    "Name -> module -> anchor of every public function and class"
    names = {}
    for nb in books.values():
        for cell in exported(nb):
            for node in public(bare(cell.source)):
                names.setdefault(node.name, {})[module(nb)] = target(node, module(nb))
    return names


def write_pages(nbs, out):
    "All pages of `nbs` as Sphinx sources; files that they link to come along"
    books = {path: nbformat.read(nbs / path, 4) for path in pages(nbs)}
    names = public_names(books)
    for path, nb in books.items():
        page = convert(nb, names, path)
        for cell in page.cells:
            if cell.cell_type == "markdown":
                cell.source = with_files(cell.source, nbs / path, out)
        if path == Path("index.ipynb"):
            page.cells += map(new_markdown_cell, contents([*books, Path("playground.md")]))
        (out / path).parent.mkdir(parents=True, exist_ok=True)
        nbformat.write(page, out / path)
    (out / "playground.md").write_text(PLAYGROUND, encoding="utf-8")
    return list(books)


def with_files(text, page, out):
    "Links to files of the repository that are not pages lead to a copy on the site"

    def one(match):
        file = (page.parent / match[2]).resolve()
        if file.suffix == ".ipynb" or not file.is_file():
            return match[0]
        (out / "files").mkdir(parents=True, exist_ok=True)
        shutil.copy(file, out / "files" / file.name)
        return f"{match[1]}(/files/{file.name})"

    return re.sub(r"(\]|!\[[^\]]*\])\((?!https?:|#)([^)\s#]+)\)", one, text)


# The finished site
class Requests(HTMLParser):
    "What a browser would fetch from elsewhere while it shows the page; a link to click is not a request"

    def __init__(self, text):
        super().__init__()
        self.found = re.findall(r'(?:url\(|@import)\s*["\']?((?:https?:)?//[^)"\';\s]+)', text)
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        loads = ("src", "href", "xlink:href", "srcset", "data", "poster")
        if tag != "a":
            self.found += [v for k, v in attrs if k in loads and re.match(r"(https?:)?//", v or "")]


def outside(site):
    files = [path for path in sorted(site.rglob("*")) if path.suffix in (".html", ".css", ".svg")]
    return [
        f"{path.relative_to(site)}: fetches {url}"
        for path in files
        for url in Requests(path.read_text()).found
    ]


def write_results(site):
    "The report inside the site: of a run, or of what is on file where nothing was run"
    from uetrust.core.settings import out_dir
    from uetrust.report.site.write import write_report

    run = next((name for name in ("demo", "smoke") if (out_dir(name) / "report").is_dir()), None)
    with tempfile.TemporaryDirectory() as empty:
        missing = write_report(run or "demo", None if run else Path(empty), site / "results", "..")
    said = f"{len(missing)} of its files are missing" if missing else "complete"
    print(f"results/ shows the run of the profile {run}: {said}" if run else NO_RUN)


NO_RUN = "no run is in runs/: results/ shows papers, methods and metrics, and links the stored notebooks"


def build(nbs, work, results=False):
    "Exit status: 0 when the site stands in `work`/html; results: with the report of a run inside"
    src, site = work / "src", work / "html"
    for folder in (src, site):
        shutil.rmtree(folder, ignore_errors=True)
    found = write_pages(nbs, src)
    sphinx = [sys.executable, "-m", "sphinx", "-q", "-W", "--keep-going", "-b", "html", "-c", ROOT / "docs"]
    rc = subprocess.call(
        [*sphinx, *(["-t", "results"] if results else []), "-d", work / "doctrees", src, site],
        env=os.environ | {"PYTHONHASHSEED": "0"},
    )
    if results:
        write_results(site)
    bad = outside(site)
    print(*bad, sep="\n", end="\n" if bad else "")
    size = sum(path.stat().st_size for path in site.rglob("*") if path.is_file()) / 1e6
    print(f"{len(found)} pages, {size:.1f} MB: {site / 'index.html'}")
    return rc or bool(bad)


if __name__ == "__main__":
    start = time.time()
    work = Path(sys.argv[1]).resolve() if len(sys.argv) > 1 else ROOT / "docs" / "_build"
    rc = build(ROOT / "nbs", work, results=True)
    print(f"{time.time() - start:.0f} s")
    sys.exit(rc)
