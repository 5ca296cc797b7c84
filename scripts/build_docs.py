"""build_docs.py [WORK]: the notebooks of nbs/ as a site in WORK/html (default docs/_build), offline. A warning or an outside request fails it."""

import ast
import io
import os
import re
import shutil
import subprocess
import sys
import time
import tokenize
from html.parser import HTMLParser
from pathlib import Path

import nbformat
from nbformat.v4 import new_markdown_cell

ROOT = Path(__file__).resolve().parents[1]
GROUPS = {
    "": "Library",
    "lessons": "Lessons",
    "experiments": "Experiments",
}  # folder in nbs/ -> caption in the sidebar, in this order
RUNS = "> `make reproduce` runs this page once for every set of parameters and keeps the executed copies under `runs/`."


# Notebooks
def pages(nbs):
    return [
        p.relative_to(nbs)
        for p in sorted(nbs.rglob("*.ipynb"))
        if not any(s[0] in "._" for s in p.relative_to(nbs).parts)
    ]


def directives(src):
    return {m[1]: m[2].strip() for m in re.finditer(r"^#\|\s*(\w+):?(.*)$", src, re.M)}


def bare(src):
    return re.sub(r"^#\|.*\n?", "", src, flags=re.M).strip()


def module(nb):
    return next((d["default_exp"] for c in nb.cells if "default_exp" in (d := directives(c.source))), None)


def exported(nb):
    return [
        c for c in nb.cells if c.cell_type == "code" and {"export", "exports"} & set(directives(c.source))
    ]


def public(src):
    return [
        n for n in ast.parse(src).body if isinstance(n, (ast.FunctionDef, ast.ClassDef)) and n.name[0] != "_"
    ]


def target(n, mod):
    return f"{'class' if isinstance(n, ast.ClassDef) else 'def'}.uetrust.{mod}.{n.name}"  # Sphinx folds case: PRR and prr must differ


# From the source of an exported cell to the page of its functions
def md(s):
    "Plain text as Markdown for a table: `code` stays code, everything else is literal"
    parts = re.split(r"(`[^`]+`)", s or "")
    return "".join(
        p.replace("|", r"\|") if i % 2 else re.sub(r"([\\*_$<>|\[\]#~])", r"\\\1", p)
        for i, p in enumerate(parts)
    )


def remarks(src):  # Line -> its trailing comment, lines that end a block's header
    toks, depth, ends = list(tokenize.generate_tokens(io.StringIO(src).readline)), 0, set()
    for t in toks:
        depth += (t.string in ("(", "[", "{")) - (t.string in (")", "]", "}")) if t.type == tokenize.OP else 0
        if t.string == ":" and not depth:
            ends.add(t.start[0])
    return {t.start[0]: t.string.lstrip("# ") for t in toks if t.type == tokenize.COMMENT}, ends


def parameters(fn, notes, ends):
    "(as written, meaning) of each parameter of `fn`, then of what it returns"
    a = fn.args
    plain, no = a.posonlyargs + a.args, object()
    given = [no] * (len(plain) - len(a.defaults)) + a.defaults
    every = [
        *zip(plain, given, strict=True),
        *([(a.vararg, no)] if a.vararg else []),
        *zip(a.kwonlyargs, [d or no for d in a.kw_defaults], strict=True),
        *([(a.kwarg, no)] if a.kwarg else []),
    ]
    head = min((e for e in ends if e >= max([fn.lineno] + [x.end_lineno for x, _ in every])), default=0)

    def one(x, d):
        stars = "*" if x is a.vararg else "**" if x is a.kwarg else ""
        line = (x if d is no else d).end_lineno
        return (
            f"`{stars}{ast.unparse(x).replace(': ', ':', 1)}{'' if d is no else '=' + ast.unparse(d)}`",
            "" if line == head else notes.get(line, ""),
        )

    res = [one(x, d) for x, d in every if x.arg not in ("self", "cls")]
    return res + (
        [("returns" + (f" `{ast.unparse(fn.returns)}`" if fn.returns else ""), notes.get(head, ""))]
        if fn.returns or notes.get(head)
        else []
    )


def members(cls, notes, ends):
    "Fields and methods of a class; the parameters of `__init__` stand for the fields when it has one"
    for n in cls.body:
        if isinstance(n, ast.AnnAssign):
            yield f"`{ast.unparse(n).replace(': ', ':', 1)}`", notes.get(n.end_lineno, "")
        if isinstance(n, ast.FunctionDef) and n.name == "__init__":
            yield from parameters(n, notes, ends)
        if isinstance(n, ast.FunctionDef) and n.name[0] != "_":
            args = ", ".join(p.strip("`") for p, _ in parameters(n, {}, ends) if p[0] == "`")
            yield (
                f"`.{n.name}{'' if any(ast.unparse(d).endswith('property') for d in n.decorator_list) else f'({args})'}`",
                ast.get_docstring(n) or notes.get(n.lineno, ""),
            )


def entry(node):
    "What a registry decorator says: kind, unit and where it comes from"
    for d in node.decorator_list:
        kw = {
            k.arg: ast.literal_eval(k.value)
            for k in getattr(d, "keywords", [])
            if isinstance(k.value, ast.Constant)
        }
        if "cite" in kw:
            facts = [
                f"Registered as `{ast.unparse(d.func)}`",
                f"unit {md(kw.get('unit', ''))}",
                *([f"judges {md(kw['dim'])}"] if kw.get("dim") else []),
            ]
            return (
                ", ".join(facts)
                + ". "
                + re.sub(r"(https?://[^\s,;]*[\w/])", r"<\1>", md(kw["cite"]).replace("\\_", "_"))
                + "."
            )


def api(src, mod):
    "Markdown for every public function and class of a cell"
    notes, ends = remarks(src)

    def one(n):
        rows = list(members(n, notes, ends) if isinstance(n, ast.ClassDef) else parameters(n, notes, ends))
        table = (
            [
                "{.params}\n| Name | Meaning |\n|:--|:--|\n"
                + "\n".join(f"| {md(k)} | {md(v)} |" for k, v in rows)
            ]
            if rows
            else []
        )
        return "\n\n".join(
            [
                f"({target(n, mod)})=\n### {md(n.name)}",
                *filter(None, [md(ast.get_docstring(n)), entry(n)]),
                *table,
            ]
        )

    return [one(n) for n in public(src)]


# From a notebook to a page
def linked(text, names, here):
    "Backticked names of the library become links, outside code blocks, links and headings"

    def one(m):
        at = names.get(m[1], {})
        to = at.get(here) or (len(at) == 1 and next(iter(at.values())))
        return f"[{m[0]}](#{to})" if to else m[0]

    parts = re.split(r"(^```.*?^```|^#.*?$|\[[^\]]*\]\([^)]*\)|\$\$.*?\$\$)", text, flags=re.M | re.S)
    return "".join(
        p if i % 2 else re.sub(r"(?<!`)`(\w+)(?:\([^`]*\))?`(?!`)", one, p) for i, p in enumerate(parts)
    )


def opening(src, mod):
    "The title cell: `> summary` becomes the lead paragraph, whatever else it says stays"
    title, *rest = src.split("\n")
    k = next((i for i, s in enumerate(rest) if s.strip() and not s.startswith(">")), len(rest))
    lead = " ".join(s.lstrip("> ") for s in rest[:k]).strip()
    return "\n\n".join(
        filter(
            None,
            [
                title,
                lead and "{.lead}\n" + lead,
                mod and f"Module `uetrust.{mod}`",
                "\n".join(rest[k:]).strip(),
            ],
        )
    )


def cells(c, mod, names):
    "The cells of the page that stand for cell `c` of the notebook"
    c.metadata = {k: v for k, v in c.metadata.items() if k == "tags"}
    if c.cell_type != "code":
        return [new_markdown_cell(linked(c.source, names, mod))]
    d, c.source = directives(c.source), bare(c.source)
    if not c.source or {"hide", "default_exp", "exporti"} & set(d):
        return []
    if not {"export", "exports"} & set(d):
        return [c]
    if all(isinstance(n, (ast.Import, ast.ImportFrom)) for n in ast.parse(c.source).body):
        return []
    c.metadata["tags"] = ["hide-input"]
    return [*map(new_markdown_cell, api(c.source, mod)), c]


def convert(nb, names, where=Path("page.ipynb")):
    "A notebook as the page that Sphinx reads"
    mod = module(nb)
    first = next((i for i, c in enumerate(nb.cells) if c.cell_type == "markdown"), None)
    if first is None or not nb.cells[first].source.startswith("# "):
        raise ValueError(f"{where}: the first text must be the title (# ...)")
    head = [opening(nb.cells[first].source, mod)]
    if where.parts[0] == "experiments":
        head.append(
            RUNS + ("" if any(c.get("outputs") for c in nb.cells) else " It is stored without outputs.")
        )
    nb.cells = [
        *map(new_markdown_cell, head),
        *(x for c in nb.cells[:first] + nb.cells[first + 1 :] for x in cells(c, mod, names)),
    ]
    for i, c in enumerate(nb.cells):
        c["id"] = f"c{i}"
    nb.metadata = {
        "kernelspec": {"name": "python3", "display_name": "Python"},
        "language_info": {"name": "python"},
    }
    return nb


def contents(found):
    "One hidden table of contents per group, in the order of GROUPS and of the numbers of the notebooks"
    of = {
        g: [
            p.with_suffix("").as_posix()
            for p in found
            if (p.parts[0] if len(p.parts) > 1 else "") == g and p.name != "index.ipynb"
        ]
        for g in GROUPS
    }
    if lost := {p for p in found if p.name != "index.ipynb"} - {
        Path(p + ".ipynb") for ps in of.values() for p in ps
    }:
        raise ValueError(f"no sidebar group for {sorted(map(str, lost))}; groups: {list(GROUPS)}")
    return [
        f"```{{toctree}}\n:hidden:\n:caption: {GROUPS[g]}\n\n" + "\n".join(ps) + "\n```"
        for g, ps in of.items()
        if ps
    ]


def write_pages(nbs, out):
    "All pages of `nbs` as Sphinx sources; files that they link to come along"
    books = {p: nbformat.read(nbs / p, 4) for p in pages(nbs)}
    names = {}
    for nb in books.values():
        for n in (n for c in exported(nb) for n in public(bare(c.source))):
            names.setdefault(n.name, {})[module(nb)] = target(n, module(nb))
    for p, nb in books.items():
        page = convert(nb, names, p)
        for c in page.cells:
            if c.cell_type == "markdown":
                c.source = with_files(c.source, nbs / p, out)
        if p == Path("index.ipynb"):
            page.cells += map(new_markdown_cell, contents(list(books)))
        (out / p).parent.mkdir(parents=True, exist_ok=True)
        nbformat.write(page, out / p)
    return list(books)


def with_files(text, page, out):
    "Links to files of the repository that are not pages lead to a copy on the site"

    def one(m):
        f = (page.parent / m[2]).resolve()
        if f.suffix == ".ipynb" or not f.is_file():
            return m[0]
        (out / "files").mkdir(parents=True, exist_ok=True)
        shutil.copy(f, out / "files" / f.name)
        return f"{m[1]}(/files/{f.name})"

    return re.sub(r"(\]|!\[[^\]]*\])\((?!https?:|#)([^)\s#]+)\)", one, text)


# The finished site
class Requests(HTMLParser):
    "What a browser would fetch from elsewhere while it shows the page; a link to click is not a request"

    def __init__(self, text):
        super().__init__()
        self.found = re.findall(r'(?:url\(|@import)\s*["\']?((?:https?:)?//[^)"\';\s]+)', text)
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        if tag != "a":
            self.found += [
                v
                for k, v in attrs
                if k in ("src", "href", "xlink:href", "srcset", "data", "poster")
                and re.match(r"(https?:)?//", v or "")
            ]


def outside(site):
    return [
        f"{f.relative_to(site)}: fetches {u}"
        for f in sorted(site.rglob("*"))
        if f.suffix in (".html", ".css", ".svg")
        for u in Requests(f.read_text()).found
    ]


def build(nbs, work):
    "Exit status: 0 when the site stands in `work`/html"
    src, site = work / "src", work / "html"
    for d in (src, site):
        shutil.rmtree(d, ignore_errors=True)
    found = write_pages(nbs, src)
    rc = subprocess.call(
        [
            sys.executable,
            "-m",
            "sphinx",
            "-q",
            "-W",
            "--keep-going",
            "-b",
            "html",
            "-c",
            ROOT / "docs",
            "-d",
            work / "doctrees",
            src,
            site,
        ],
        env=os.environ | {"PYTHONHASHSEED": "0"},
    )
    bad = outside(site)
    print(*bad, sep="\n", end="\n" if bad else "")
    print(
        f"{len(found)} pages, {sum(f.stat().st_size for f in site.rglob('*') if f.is_file()) / 1e6:.1f} MB: {site / 'index.html'}"
    )
    return rc or bool(bad)


if __name__ == "__main__":
    start = time.time()
    rc = build(ROOT / "nbs", Path(sys.argv[1]).resolve() if len(sys.argv) > 1 else ROOT / "docs" / "_build")
    print(f"{time.time() - start:.0f} s")
    sys.exit(rc)
