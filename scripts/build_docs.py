"""build_docs.py [WORK]: the report and the notebooks of nbs/ as one site in WORK/html (default docs/_build).

Nothing is fetched. A link that leads nowhere and a request to the outside fail it.
"""

import ast
import base64
import hashlib
import html
import os
import re
import shutil
import sys
import tempfile
import time
import tomllib
from functools import cache
from html.parser import HTMLParser
from io import BytesIO
from pathlib import Path
from types import MappingProxyType

import nbformat
from nbformat.v4 import new_markdown_cell

from uetrust import __version__
from uetrust.core.docstrings import described

ROOT = Path(__file__).resolve().parents[1]
RUNS = (
    "> `make reproduce` runs this page once for every set of parameters "
    "and keeps the executed copies under `runs/`."
)

FIRST = Path("lessons/1_basics/01_what_is_prr.ipynb")
START = "index findings install your_own_outputs plug_ins generate_and_read change_one_thing teach_with_it"
START = [
    *START.split(),
    "where_things_are",
    "where_the_time_goes",
    "what_is_promised",
]  # In the order of a first visit, after FIRST


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


def defined(src):
    return [node.name for node in ast.parse(src).body if isinstance(node, (ast.FunctionDef, ast.ClassDef))]


def target(node, mod):  # Its place on its page
    return f"{mod}.{node.name}"


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
        table = f"<div class=params>\n\n| Name | Meaning |\n|:--|:--|\n{lines}\n\n</div>" if rows else ""
        head = f'<h3 id="{target(node, mod)}">{node.name}</h3>'
        return "\n\n".join(filter(None, [head, prose(ast.get_docstring(node)), entry(node), table]))

    return [one(node) for node in public(src)]


# From a notebook to a page
def linked(text, names, here):
    "Backticked names of the library become links, outside code blocks, links and headings"

    def one(match):
        at = names.get(match[1], {})
        to = at.get(here) or (len(at) == 1 and next(iter(at.values())))
        return f"[{match[0]}]({to})" if to else match[0]

    parts = re.split(r"(^```.*?^```|^#.*?$|\[[^\]]*\]\([^)]*\)|\$\$.*?\$\$)", text, flags=re.M | re.S)
    name = r"(?<!`)`(\w+)(?:\([^`]*\))?`(?!`)"
    return "".join(part if i % 2 else re.sub(name, one, part) for i, part in enumerate(parts))


def opening(src, mod):
    "The title cell: `> summary` becomes the lead paragraph, whatever else it says stays"
    title, *rest = src.split("\n")
    end = next((i for i, line in enumerate(rest) if line.strip() and not line.startswith(">")), len(rest))
    lead = " ".join(line.lstrip("> ") for line in rest[:end]).strip()
    parts = [title, lead and f"<div class=lead>\n\n{lead}\n\n</div>", mod and f"Module `uetrust.{mod}`"]
    return "\n\n".join(filter(None, [*parts, "\n".join(rest[end:]).strip()]))


def only_imports(src):
    return all(isinstance(node, (ast.Import, ast.ImportFrom)) for node in ast.parse(src).body)


def live_panels(cell):
    "Panels of the playground in place of their pictures, which show where a browser runs no script"
    panels = [out for out in cell.get("outputs", []) if is_panel(out)]
    cell["outputs"] = [out for out in cell.get("outputs", []) if not is_panel(out)]
    for data in (out["data"] for out in panels):
        state = html.escape(data["text/plain"].partition("#")[2])
        yield new_markdown_cell(f'<div data-playground="{state}">{data["image/svg+xml"]}</div>')


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
        if "hide_input" in said:
            cell.metadata["tags"] = ["remove-input"]
        return [cell, *live_panels(cell)]
    if only_imports(cell.source):
        return []
    cell.metadata["tags"] = ["hide-input"]
    return [*map(new_markdown_cell, api(cell.source, mod, bases)), cell]


def convert(nb, names, where=Path("page.ipynb")):
    "A notebook as the cells of its page"
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
    "(caption, pages) of every folder: pages beside the index, lessons, experiments, then the wings"
    groups = {}
    for path in found:
        groups.setdefault("/".join(path.parts[:-1]), []).append(path)
    groups[""] = sorted(
        groups.get("", []), key=lambda path: START.index(path.stem) if path.stem in START else 99
    )
    order = sorted(
        groups, key=lambda g: (g != "", not g.startswith("lessons"), not g.startswith("experiments"), g)
    )
    return [(caption(group), groups[group]) for group in order if groups[group]]


def public_names(books):
    "Name -> module -> address of every public function and class"
    names = {}
    for path, nb in books.items():
        for cell in exported(nb):
            for node in public(bare(cell.source)):
                names.setdefault(node.name, {})[module(nb)] = f"/{path}#{target(node, module(nb))}"
    return names


# From the cells of a page to HTML
@cache
def markdown():
    from markdown_it import MarkdownIt
    from mdit_py_plugins.dollarmath import dollarmath_plugin

    def formula(text, options):
        from latex2mathml.converter import convert

        return convert(text.strip(), display="block" if options["display_mode"] else "inline")

    parser = MarkdownIt(
        "commonmark", dict(html=True, highlight=lambda text, lang, _: highlighted(text, lang))
    )
    parser.enable("table").use(dollarmath_plugin, renderer=formula, allow_digits=False)
    return parser


def highlighted(text, lang="python"):
    from pygments import highlight
    from pygments.formatters import HtmlFormatter
    from pygments.lexers import get_lexer_by_name
    from pygments.util import ClassNotFound

    try:
        lexer = get_lexer_by_name(lang or "text")
    except ClassNotFound:
        lexer = get_lexer_by_name("text")
    shown = highlight(text, lexer, HtmlFormatter(nowrap=True)).rstrip()
    return re.sub(r'<span class="(?:n|p|w|o)">([^<]*)</span>', r"\1", shown)


def slug(text):
    return re.sub(r"[^a-z0-9]+", "-", text.lower()).strip("-")


class Writer:
    "HTML of the pages; files that they show or link come along, and links that lead nowhere are kept"

    def __init__(self, nbs, books):
        self.nbs, self.books = nbs, books
        self.files, self.dead = {}, []

    def file(self, name, content):
        self.files[name] = content
        return f"files/pages/{name}"

    def address(self, link, path):
        "Where a link of a page leads, from the root of the site; None for one that leads elsewhere"
        to, _, fragment = link.partition("#")
        if not to or re.match(r"[a-z]+:", link):
            return None
        file = (self.nbs / (to[1:] if to[0] == "/" else path.parent / to)).resolve()
        page = Path(os.path.relpath(file, self.nbs.resolve()))
        if page in self.books:
            return address_of(page) + (f"#{fragment}" if fragment else "")
        if file.is_file():
            return self.file(file.name, file.read_bytes())
        self.dead.append(f"{path}: {link} leads nowhere")
        return None

    def text(self, source, path):
        "Markdown as HTML, with its links and pictures"
        parser = markdown()
        tokens, back = parser.parse(source), "../" * (len(path.parts) - 1)
        for token in (token for block in tokens for token in [block, *(block.children or [])]):
            for attribute in ("href", "src"):
                if attribute in token.attrs and (to := self.address(token.attrs[attribute], path)):
                    token.attrs[attribute] = back + to
        for head, inline in zip(tokens, tokens[1:]):
            if head.type == "heading_open" and head.tag != "h1":
                head.attrs["id"] = slug(inline.content)
        shown = parser.renderer.render(tokens, parser.options, {})
        shown = re.sub(r"<table>.*?</table>", r"<div class=wide>\g<0></div>", shown, flags=re.S)
        return re.sub(r"<pre><code([^>]*)>(.*?)</code></pre>", code_box, shown, flags=re.S)

    def picture(self, data, path, about):
        from PIL import Image

        content = base64.b64decode(data)
        width, height = Image.open(BytesIO(content)).size
        name = self.file(f"{hashlib.sha256(content).hexdigest()[:16]}.png", content)
        size = f'width="{width}" height="{height}" alt="Figure: {html.escape(about)}" loading="lazy"'
        return f'<img src="{"../" * (len(path.parts) - 1)}{name}" {size}>'

    def output(self, out, path, about):
        "What a cell shows"
        if out.output_type == "stream":
            return f"<pre>{plain(out.text)}</pre>"
        data = out.get("data", {})
        if "text/markdown" in data:
            return self.text(data["text/markdown"], path)
        if "image/png" in data:
            return self.picture(data["image/png"], path, about)
        for kind in ("text/html", "image/svg+xml"):
            if kind in data:
                return re.sub(r"<style.*?</style>", "", data[kind], flags=re.S)
        return f"<pre>{plain(data.get('text/plain', ''))}</pre>"

    def cell(self, cell, path, about):
        "HTML of a cell of `convert`"
        if cell.cell_type == "markdown":
            return self.text(cell.source, path)
        tags = cell.metadata.get("tags", [])
        source = "" if "remove-input" in tags else code_box(source=highlighted(cell.source))
        if "hide-input" in tags:
            named = ", ".join(f"<code>{name}</code>" for name in defined(cell.source))
            about = f"Source of {named}" if named else "Source"
            source = f"<details class=source><summary>{about}</summary>{source}</details>"
        shown = [self.output(out, path, about) for out in merged(cell.get("outputs", []))]
        return source + "".join(f"<div class=output>{one}</div>" for one in shown)

    def page(self, nb, path):
        "HTML of all cells of `convert`; a figure is named by the heading above it"
        shown, about = [], ""
        for cell in nb.cells:
            heads = re.findall(r"^#+ (.+)$", cell.source, re.M) if cell.cell_type == "markdown" else []
            about = heads[-1] if heads else about
            shown.append(self.cell(cell, path, about))
        return once("\n".join(shown))


def merged(outputs):
    "Outputs, with streams that follow each other as one"
    found = []
    for out in outputs:
        if found and out.output_type == "stream" == found[-1].output_type:
            found[-1] = nbformat.from_dict(dict(output_type="stream", text=found[-1].text + out.text))
        else:
            found.append(out)
    return found


def code_box(match=None, source=None):
    return f"<div class=cell><pre class=code>{match[2].rstrip() if match else source}</pre></div>"


def plain(text):
    return html.escape(re.sub(r"\x1b\[[0-9;]*m", "", text).rstrip())


def once(page):
    "The page with every name of a place only once: a second place of a name is numbered"
    seen = {}

    def one(match):
        seen[match[1]] = seen.get(match[1], 0) + 1
        return f'id="{match[1]}-{seen[match[1]]}"' if seen[match[1]] > 1 else match[0]

    return re.sub(r'id="([^"]*)"', one, page)


def address_of(path):
    return "introduction.html" if path == Path("index.ipynb") else path.with_suffix(".html").as_posix()


def title_and_lead(nb):
    "First line and quotation of a notebook, without marks"
    title, *rest = next(cell.source for cell in nb.cells if cell.cell_type == "markdown").split("\n")
    lead = " ".join(line.lstrip("> ") for line in rest if line.startswith(">"))
    return title.lstrip("# ").replace("`", ""), lead.replace("`", "")


def listed(groups, known):
    "HTML of a list of pages by their folders; `known` has title and lead of each"
    found = []
    for name, paths in groups:
        rows = [(address_of(path), *map(html.escape, known[path])) for path in paths]
        items = "".join(f'<li><a href="{to}">{title}</a><span>{lead}</span></li>' for to, title, lead in rows)
        found.append(f'<h2 id="{slug(name)}">{name}</h2><ul class=questions>{items}</ul>')
    return "".join(found)


def entries(nb, path):
    "What the search field finds of a page: the page, and its functions and classes"
    to, (title, lead) = address_of(path), title_and_lead(nb)
    found = [[title, to, lead, "", "", 0]]
    for node in (node for cell in exported(nb) for node in public(bare(cell.source))):
        about = (ast.get_docstring(node) or "").partition("\n")[0]
        found.append([node.name, f"{to}#{target(node, module(nb))}", about, module(nb), "", 0])
    return found


def repository():
    "Address of the public repository, the entry Repository below [project.urls]; '' while there is none"
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    return project.get("urls", {}).get("Repository", "").rstrip("/")


def in_colab(path):
    "Link that opens a lesson in Colab, and the cell that has to run first there; '' without a repository"
    address = repository()
    if path.parts[0] != "lessons" or not address.startswith("https://github.com/"):
        return ""
    name, tag = address.removeprefix("https://github.com/"), f"v{__version__}"
    colab = f"https://colab.research.google.com/github/{name}/blob/{tag}/nbs/{path.as_posix()}"
    first = (
        f"!git clone -q --depth 1 --branch {tag} {address} project && pip install -q ./project\n"
        f"%cd project/nbs/{path.parent.as_posix()}"
    )
    link = f'<p><a href="{html.escape(colab)}">Open in Colab</a>. Run this in a new first cell there:</p>'
    return f"{link}<pre tabindex=0>{html.escape(first)}</pre>"


def documentation(nbs):
    "(File -> what its page shows, files that come along, links that lead nowhere) of the notebooks"
    books = {path: nbformat.read(nbs / path, 4) for path in pages(nbs)}
    names, writer, groups = public_names(books), Writer(nbs, books), contents(books)
    known, found = {path: title_and_lead(nb) for path, nb in books.items()}, {}
    for path, nb in books.items():
        found[path] = dict(title=known[path][0], entries=entries(nb, path))
        body = writer.page(convert(nb, names, path), path)
        found[path]["body"] = body.replace("<h2", in_colab(path) + "<h2", 1)
    for name, paths in groups:
        lessons = paths[0].parts[0] == "lessons"
        up = (f"{'lessons' if lessons else 'documentation'}.html#{slug(name)}", name)
        links = [(address_of(path), found[path]["title"]) for path in paths]
        for path, before, after in zip(paths, [None, *links], [*links[1:], None]):
            found[path] |= dict(up=up, before=before, after=after)
    lessons = [group for group in groups if group[1][0].parts[0] == "lessons"]
    others = [group for group in groups if group not in lessons]
    if FIRST in books and others:
        others[0] = (others[0][0], [FIRST, *others[0][1]])
    for title, shown in {"Lessons": lessons, "Documentation": others}.items():
        about = dict(title=title, body=f"<h1>{title}</h1>{listed(shown, known)}", entries=[])
        found[Path(f"{title.lower()}.ipynb")] = about | dict(up=None, before=None, after=None)
    return {address_of(path): shown for path, shown in found.items()}, writer.files, writer.dead


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


def write_site(site, docs):
    "The report of a run, or of what is on file where nothing was run, with the pages of the documentation"
    from uetrust.core.settings import out_dir
    from uetrust.report.site.write import write_report

    run = next((name for name in ("demo", "smoke") if (out_dir(name) / "report").is_dir()), None)
    with tempfile.TemporaryDirectory() as empty:
        missing = write_report(run or "demo", None if run else Path(empty), site, docs)
    said = f"{len(missing)} of its files are missing" if missing else "complete"
    print(f"the report is that of the profile {run}: {said}" if run else NO_RUN)


NO_RUN = "no run is in runs/: the report shows papers, methods and metrics, and links the stored notebooks"


def build(nbs, work):
    "Exit status: 0 when the site stands in `work`/html"
    site = work / "html"
    shutil.rmtree(site, ignore_errors=True)
    docs, files, dead = documentation(nbs)
    write_site(site, docs)
    for name, content in files.items():
        (site / "files" / "pages").mkdir(parents=True, exist_ok=True)
        (site / "files" / "pages" / name).write_bytes(content)
    bad = [*dead, *outside(site)]
    print(*bad, sep="\n", end="\n" if bad else "")
    size = sum(path.stat().st_size for path in site.rglob("*") if path.is_file()) / 1e6
    print(f"{len(list(site.rglob('*.html')))} pages, {size:.1f} MB: {site / 'index.html'}")
    return int(bool(bad))


if __name__ == "__main__":
    start = time.time()
    work = Path(sys.argv[1]).resolve() if len(sys.argv) > 1 else ROOT / "docs" / "_build"
    rc = build(ROOT / "nbs", work)
    print(f"{time.time() - start:.0f} s")
    sys.exit(rc)
