"""The site: what a page must show, what it must not lose, and what must never be fetched."""

import importlib.util
import json
import re
from pathlib import Path

import nbformat
import pytest
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook, new_output

import uetrust
from tests.helpers.paths import ROOT

spec = importlib.util.spec_from_file_location("build_docs", ROOT / "scripts" / "build_docs.py")
docs = importlib.util.module_from_spec(spec)
spec.loader.exec_module(docs)


def text(s):
    return new_markdown_cell(s)


def code(s, **kw):
    return new_code_cell(s, **kw)


def book(*cells):
    return new_notebook(cells=list(cells))


def sources(nb, kind):
    return [c.source for c in nb.cells if c.cell_type == kind]


LIBRARY = book(
    text("# Half\n> Half of a number, in one function.\n\nThe title cell goes on, with `half` and $x^2$."),
    code("#| default_exp half"),
    code("#| export\nimport os\nfrom pathlib import Path"),
    code("#| hide\nassert half(secret_check=2)==1"),
    text("## A function"),
    code("""#| export
FACTOR = 2

def half(
    x:float, # A number, `a|b` or $5
    by:int=FACTOR, # What divides it
    *rest, # Ignored
    exact:bool=True, # Whether to keep *all* digits
)->float: # Half of it
    "Half of `x`."
    return x/by

def _private(y): # Not shown
    return y"""),
    text("Half of 3 is 1.5, says `half(3)`; `unknown` is no function."),
    code("half(3)", outputs=[new_output("execute_result", {"text/plain": "1.5"})]),
)


# The opening cell
def test_everything_after_the_summary_is_kept():
    "The first cell is more than a title and a summary; nothing of it may vanish."
    top = docs.opening("# Half\n> Half of a number,\n> in one function.\n\nMore text.\n\n- a list", "half")
    lead = "<div class=lead>\n\nHalf of a number, in one function.\n\n</div>"
    assert top == f"# Half\n\n{lead}\n\nModule `uetrust.half`\n\nMore text.\n\n- a list"


def test_a_page_needs_a_title():
    with pytest.raises(ValueError, match="07_x.ipynb: the first text must be the title"):
        docs.convert(book(text("no title")), {}, Path("07_x.ipynb"))


# Parameter tables
def table(src):
    return docs.api(src, "half")


def test_a_class_has_the_members_of_its_private_base():
    base = 'class _Half:\n    def half(self):\n        "Half of it"'
    whole = 'class Whole(_Half):\n    size: float  # Not 0\n\n    def twice(self):\n        "Two of it"'
    found = docs.private_classes(book(text("# Half"), code(f"#| export\n{base}")))
    (page,) = docs.api(whole, "half", found)
    assert re.findall(r"^\| `(\.?\w+)", page, re.M) == ["size", ".half", ".twice"]


def test_every_parameter_stands_beside_its_comment():
    (page,) = table(docs.bare(LIBRARY.cells[5].source))
    assert page.startswith('<h3 id="half.half">half</h3>\n\nHalf of `x`.\n\n<div class=params>\n\n')
    rows = [ln for ln in page.splitlines() if ln.startswith("| ")][1:]
    assert rows == [
        "| `x:float` | A number, `a\\|b` or \\$5 |",
        "| `by:int=FACTOR` | What divides it |",
        "| `*rest` | Ignored |",
        "| `exact:bool=True` | Whether to keep \\*all\\* digits |",
        "| returns `float` | Half of it |",
    ]


def test_a_function_on_one_line_gives_its_comment_to_what_it_returns():
    (page,) = table('def one(a, b=2)->int: # The sum\n    "Add."\n    return a+b')
    assert page.endswith("| `a` |  |\n| `b=2` |  |\n| returns `int` | The sum |\n\n</div>")


def test_fields_properties_and_methods_of_a_class():
    (page,) = table("""class Box(NamedTuple):
    "A box"
    wide:float # In metres
    name:str = 'x' # Its label
    def area(self, high:float=1.): return self.extra_stats*high # In square metres
    @property
    def kind(self):
        "What it is"
        return 'box'
    @cached_property
    def cost(self): return 2 # In euro
    def _hidden(self): return 0""")
    rows = [ln for ln in page.splitlines() if ln.startswith("| ")][1:]
    assert page.startswith('<h3 id="half.Box">Box</h3>')
    assert rows == [
        "| `wide:float` | In metres |",
        "| `name:str='x'` | Its label |",
        "| `.area(high:float=1.0)` | In square metres |",
        "| `.kind` | What it is |",
        "| `.cost` | In euro |",
    ]


def test_parameters_of_init_stand_for_fields():
    (page,) = table(
        'class Run:\n    "One run"\n    def __init__(\n        self,\n'
        "        n:int, # How many\n    ):\n        self.n = n"
    )
    assert page.endswith("| Name | Meaning |\n|:--|:--|\n| `n:int` | How many |\n\n</div>")


def test_a_registered_function_shows_unit_and_source():
    (page,) = (
        table("""@nlg(dim='relevance', unit='[0,1]', cite='Lin 2004, Eq. 1, https://aclanthology.org/W04-1013')
def recall(words:list)->float: # Larger is better
    "Share found."
    return 0.""")
    )
    assert (
        "Registered as `nlg`, unit \\[0,1\\], judges relevance. Lin 2004, Eq. 1, "
        "<https://aclanthology.org/W04-1013>." in page
    )


# Cells
@pytest.fixture
def page():
    return docs.convert(nbformat.from_dict(LIBRARY), {"half": {"half": "/half.ipynb#half.half"}})


def test_hidden_cells_and_import_cells_are_left_out(page):
    assert not [
        s for s in sources(page, "code") if "secret_check" in s or "import os" in s or "default_exp" in s
    ]


def test_source_of_exported_cells_is_folded_and_the_rest_is_open(page):
    tags = {c.source.split("\n")[0]: c.metadata.get("tags") for c in page.cells if c.cell_type == "code"}
    assert tags == {"FACTOR = 2": ["hide-input"], "half(3)": None}


def test_names_of_the_library_become_links():
    names = {
        "half": {"half": "/half.ipynb#half.half"},
        "frame": {"core": "/core.ipynb#core.frame", "plots": "/plots.ipynb#plots.frame"},
    }

    def to(s, here=None):
        return docs.linked(s, names, here)

    assert (
        to("see `half` and `half(3)`")
        == "see [`half`](/half.ipynb#half.half) and [`half(3)`](/half.ipynb#half.half)"
    )
    assert (
        to("`frame`") == "`frame`" and to("`frame`", "plots") == "[`frame`](/plots.ipynb#plots.frame)"
    )  # two modules: only on its own page
    for left in ("`other`", "[`half`](x.ipynb)", "## `half`", "```\n`half`\n```"):
        assert to(left) == left


@pytest.mark.parametrize("p", docs.pages(ROOT / "nbs"), ids=str)
def test_no_text_and_no_public_function_of_a_notebook_is_dropped(p):
    nb = nbformat.read(ROOT / "nbs" / p, 4)
    before = [c.source for c in nb.cells if c.cell_type == "markdown"]
    names = [n.name for c in docs.exported(nb) for n in docs.public(docs.bare(c.source))]
    after = "\n".join(sources(docs.convert(nb, {}, p), "markdown"))
    assert re.findall(r'^<h3 id="[\w.]+\.(\w+)">\1</h3>$', after, re.M) == names
    assert [s for s in before[1:] if s not in after] == []
    assert set(re.findall(r"\w+", before[0])) - set(re.findall(r"\w+", after)) == set()


# The list of pages
def test_folders_and_numbers_give_the_order():
    "The start in the order of a visit, then lessons, then experiments by folder, then the wings."
    names = "01_core/01_a 10_papers/05_b 10_papers/01_he2024/01_c experiments/ice/01_e index teach_with_it"
    names += " lessons/2_b/01_f experiments/people/02_g your_own_outputs unlisted"
    found = docs.contents([Path(f"{name}.ipynb") for name in names.split()])
    assert [(name, [path.with_suffix("").as_posix() for path in paths]) for name, paths in found] == [
        ("Start here", ["index", "your_own_outputs", "teach_with_it", "unlisted"]),
        ("Lessons: b", ["lessons/2_b/01_f"]),
        ("Experiments: ICE", ["experiments/ice/01_e"]),
        ("Experiments: people", ["experiments/people/02_g"]),
        ("Core", ["01_core/01_a"]),
        ("Papers", ["10_papers/05_b"]),
        ("Papers: He et al. 2024", ["10_papers/01_he2024/01_c"]),
    ]


def test_every_page_of_the_start_is_there_and_none_is_forgotten():
    names = [path.stem for path in (ROOT / "nbs").glob("*.ipynb")]
    assert sorted(names) == sorted(docs.START) and (ROOT / "nbs" / docs.FIRST).is_file()


# Markup
def writer(tmp_path, path="a/b.ipynb", **files):
    for name, content in files.items():
        (tmp_path / "a").mkdir(exist_ok=True)
        (tmp_path / "a" / name.replace("_", ".")).write_bytes(content)
    return docs.Writer(tmp_path, {Path(path): None})


def test_links_to_pages_files_and_nowhere(tmp_path):
    made = writer(tmp_path, n_csv=b"1,2")
    shown = made.text("[b](b.ipynb#half), [n](n.csv), [w](https://x.org), [no](c.ipynb)", Path("a/c.ipynb"))
    for link in ("../a/b.html#half", "../files/pages/n.csv", "https://x.org"):
        assert f'href="{link}"' in shown
    assert made.files == {"n.csv": b"1,2"} and made.dead == ["a/c.ipynb: c.ipynb leads nowhere"]


def test_text_output_and_code_stay_text(tmp_path):
    "A script in an output, in a code block and in a stream with colours"
    made, evil = writer(tmp_path), "<script>alert(1)</script>"
    stream = [new_output("stream", text=f"\x1b[31m{evil}\x1b[0m\n"), new_output("stream", text="more")]
    cell = code(f"print('{evil}')", outputs=stream)
    shown = made.cell(cell, Path("a.ipynb"), "") + made.text(f"```python\n{evil}\n```", Path("a.ipynb"))
    assert "<script>" not in shown and shown.count("&lt;") >= 3 and "\x1b" not in shown
    assert shown.count("class=output") == 1 and shown.count("<pre class=code>") == 2


def test_a_figure_is_a_file_with_a_size_and_the_heading_above_it(tmp_path):
    import base64
    from io import BytesIO

    from PIL import Image

    drawn = BytesIO()
    Image.new("RGB", (30, 20)).save(drawn, "png")
    shown = {"image/png": base64.b64encode(drawn.getvalue()).decode(), "text/plain": "Figure"}
    nb = book(
        text("# Title"), text("## A curve"), code("draw()", outputs=[new_output("display_data", shown)])
    )
    made = writer(tmp_path)
    page = made.page(docs.convert(nb, {}), Path("a/b.ipynb"))
    (name,) = made.files
    assert f'src="../files/pages/{name}" width="30" height="20" alt="Figure: A curve"' in page
    assert made.files[name] == drawn.getvalue()


def test_a_place_has_its_name_alone(tmp_path):
    page = writer(tmp_path).page(book(text("# A"), text("## Half"), text("## Half")), Path("a.ipynb"))
    assert re.findall('id="([^"]*)"', page) == ["half", "half-2"]


# Requests
@pytest.mark.parametrize(
    "html",
    [
        '<script src="https://cdn.org/a.js"></script>',
        '<link rel="stylesheet" href="//cdn.org/a.css">',
        '<img srcset="http://a.org/x.png">',
        '<style>@import "https://a.org/f.css";</style>',
        '<p style="background:url(https://a.org/x.png)">',
        '<svg><image xlink:href="https://a.org/x.png"/></svg>',
    ],
)
def test_outside_requests_are_seen(html):
    assert len(docs.Requests(html).found) == 1


@pytest.mark.parametrize(
    "html",
    [
        '<a href="https://arxiv.org/abs/2406.17274">paper</a>',
        '<img src="data:image/png;base64,AA//BB">',
        '<script src="_static/a.js?v=1"></script>',
        '<svg xmlns="http://www.w3.org/2000/svg"></svg>',
        '<style>p {background: url("x.png")}</style>',
        '<code>src="https://x.org"</code>',
    ],
)
def test_links_and_own_files_are_no_requests(html):
    assert docs.Requests(html).found == []


# A whole small site
def write(nbs, **books):
    for k, nb in books.items():
        (nbs / k.replace("__", "/")).parent.mkdir(parents=True, exist_ok=True)
        nbformat.write(nbformat.from_dict(nb), nbs / (k.replace("__", "/") + ".ipynb"))
    return nbs


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    d = tmp_path_factory.mktemp("site")
    (d / "nbs").mkdir()
    (d / "nbs" / "numbers.csv").write_text("a,b\n1,2\n")
    nbs = write(
        d / "nbs",
        index=book(
            text("# Front\n> First page."),
            text("To [half](01_core/01_half.ipynb) and [numbers](numbers.csv)."),
        ),
        **{"01_core__01_half": LIBRARY},
        lessons__01_why=book(text("# Why\n> A reason."), text("See `half`.\n\n$$\\frac{E-A}{E-A^*}$$")),
        experiments__people__01_run=book(
            text("# Run\n> One run."), code("n = 3 # How many", metadata={"tags": ["parameters"]}), code("n")
        ),
    )
    assert docs.build(nbs, d / "work") == 0
    return d / "work" / "html"


def html(site, name):
    return (site / (name + ".html")).read_text()


def seen(site, name):
    return re.sub(r"<[^>]+>", "", html(site, name))  # without tags


@pytest.mark.long
def test_pages_show_tables_links_and_outputs(site):
    h = html(site, "01_core/01_half")
    assert "Half of a number, in one function." in h and "The title cell goes on" in h
    assert "What divides it" in h and "secret_check" not in h and "<pre>1.5</pre>" in h
    assert "<summary>Source of <code>half</code>, <code>_private</code></summary>" in h
    assert 'href="../01_core/01_half.html#half.half"' in html(site, "lessons/01_why")


@pytest.mark.long
def test_formulas_are_mathml(site):
    h = html(site, "lessons/01_why")
    assert "<mfrac>" in h and 'display="block"' in h and "$" not in seen(site, "lessons/01_why")


@pytest.mark.long
def test_report_and_documentation_are_one_site_with_one_header(site):
    pages = [path.relative_to(site).as_posix() for path in site.rglob("*.html")]
    assert {"index.html", "methods.html", "documentation.html", "lessons.html"} <= set(pages)
    for page in pages:
        header, back = (
            re.search("<header>.*</header>", (site / page).read_text(), re.S)[0],
            "../" * page.count("/"),
        )
        links = re.findall('href="([^"]*)"', header)
        assert f"{back}documentation.html" in links and f"{back}methods.html" in links, page
        assert all((site / page).parent.joinpath(link.partition("#")[0]).is_file() for link in links), page
    assert "your_own_outputs.html" not in html(site, "index")  # This site has no such page


@pytest.mark.long
def test_a_page_leads_to_its_list_and_the_list_to_it(site):
    assert 'href="../documentation.html#core"' in html(site, "01_core/01_half")
    assert 'href="01_core/01_half.html">Half</a><span>Half of a number' in html(site, "documentation")
    assert 'href="lessons/01_why.html">Why</a>' in html(site, "lessons")


@pytest.mark.long
def test_the_search_field_finds_pages_and_functions(site):
    index = json.loads((site / "index.js").read_text().removeprefix("const INDEX = ").rstrip(";\n"))
    assert ["half", "01_core/01_half.html#half.half", "Half of `x`.", "half", "", 0] in index
    assert ["Why", "lessons/01_why.html", "A reason.", "", "", 0] in index


@pytest.mark.long
def test_linked_files_come_along(site):
    assert list(site.rglob("numbers.csv")) and 'numbers.csv"' in html(site, "introduction")


@pytest.mark.long
def test_an_experiment_says_what_runs_it(site):
    h = seen(site, "experiments/people/01_run")
    assert "make reproduce" in h and "stored without outputs" in h and "How many" in h


@pytest.mark.long
def test_the_site_fetches_nothing(site):
    assert docs.outside(site) == []
    (site / "extra.html").write_text('<script src="https://cdn.org/a.js"></script>')
    assert docs.outside(site) == ["extra.html: fetches https://cdn.org/a.js"]


@pytest.mark.parametrize("source", ["[dead](nowhere.ipynb)", '<img src="https://example.org/x.png">'])
def test_a_dead_link_and_an_outside_request_fail_the_build(tmp_path, monkeypatch, source):
    "The pages alone, without the report"

    def write_site(site, docs):
        for name, shown in docs.items():
            (site / name).parent.mkdir(parents=True, exist_ok=True)
            (site / name).write_text(shown["body"])

    monkeypatch.setattr(docs, "write_site", write_site)
    for shown, fails in ((source, True), ("Quiet.", False)):
        nbs = write(tmp_path / "nbs", index=book(text("# Front\n> First page."), text(shown)))
        assert docs.build(nbs, tmp_path / "work") == fails


@pytest.mark.parametrize("page, exists", [("01_core/01_half", True), ("nowhere", False)])
def test_a_link_in_a_table_that_a_page_computes_is_a_link_of_the_page(tmp_path, page, exists):
    table = f"| Module |\n|:--|\n| [half]({page}.ipynb) |"
    shown = new_output("execute_result", {"text/markdown": table, "text/plain": "Markdown"})
    front = book(text("# Front\n> First page."), code("#| hide_input\nMarkdown(table)", outputs=[shown]))
    pages, _, dead = docs.documentation(write(tmp_path, index=front, **{"01_core__01_half": LIBRARY}))
    assert bool(dead) != exists
    assert ('href="01_core/01_half.html"' in pages["introduction.html"]["body"]) == exists


def test_a_lesson_opens_in_colab_once_the_project_has_a_public_address(tmp_path, monkeypatch):
    "The address stands in pyproject.toml alone; without one there is no link, and no notebook is changed"
    lesson = book(text("# Lesson\n> A lesson."), text("## A part"))
    nbs = write(tmp_path, index=book(text("# Front\n> First page.")), lessons__1_basics__01_one=lesson)
    project = tmp_path / "pyproject.toml"
    monkeypatch.setattr(docs, "ROOT", tmp_path)

    def body(urls):
        project.write_text(f"[project]\nname = 'x'\n{urls}")
        return docs.documentation(nbs)[0]["lessons/1_basics/01_one.html"]["body"]

    assert "olab" not in body("")
    shown = body("[project.urls]\nRepository = 'https://github.com/some/one/'\n")
    here = f"github/some/one/blob/v{uetrust.__version__}/nbs/lessons/1_basics/01_one.ipynb"
    assert f'href="https://colab.research.google.com/{here}"' in shown
    assert "git clone -q --depth 1" in shown and "https://github.com/some/one project" in shown
    assert shown.index("olab") < shown.index("<h2")
