"""Sphinx settings. `scripts/build_docs.py` writes the pages and calls Sphinx; nothing asks the network."""

project = html_title = "uetrust"
author = "uetrust authors"
language = "en"
smartquotes = False  # a quote in a parameter's comment is code
extensions = ["myst_nb", "sphinx_copybutton"]
myst_enable_extensions = ["attrs_block", "colon_fence", "deflist", "dollarmath"]
myst_heading_anchors = 3
suppress_warnings = ["myst.header"]  # a function's heading may follow the title directly
nb_execution_mode = "off"  # the stored outputs are the outputs
nb_merge_streams = True
nb_code_prompt_show = nb_code_prompt_hide = "Source"

html_theme = "furo"
html_theme_options = dict(
    light_css_variables={"color-brand-primary": "#1b6ac9", "color-brand-content": "#1b6ac9"},
    dark_css_variables={"color-brand-primary": "#7db4ff", "color-brand-content": "#7db4ff"},
)
templates_path = ["_templates"]
_SIDEBAR = ["brand", "search", "scroll-start", "results", "navigation", "scroll-end"]
_SHOWN = [part for part in _SIDEBAR if part != "results" or tags.has("results")]  # noqa: F821
html_sidebars = {"**": [f"sidebar/{part}.html" for part in _SHOWN]}
html_static_path = ["_static"]
html_css_files = ["uetrust.css"]
html_js_files = ["scrolling.js"]
html_show_copyright = html_show_sphinx = html_show_sourcelink = html_copy_source = False
html_math_renderer = "mathml"  # every current browser draws it: no script and no font to fetch


def _math(display, box):
    def visit(self, node):
        from docutils import nodes
        from latex2mathml.converter import convert

        self.body.append(box.format(convert(node.astext().strip(), display=display)))
        raise nodes.SkipNode

    return visit, None


def _levels(app, page, template, context, doctree):
    "The sidebar's captions are headings: of the second level"
    tree = context["furo_navigation_tree"]
    context["furo_navigation_tree"] = tree.replace('role="heading"', 'role="heading" aria-level="2"')


def _playground_files(app):  # Written where Sphinx keeps the files of its themes
    from pathlib import Path

    from uetrust.report.playground import playground_file, playground_script

    folder = Path(app.outdir) / "_static"
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "playground.js").write_text(playground_script(), encoding="utf-8")
    (folder / "playground.css").write_text(playground_file("style.css"), encoding="utf-8")


def _load_playground(app, name, template, context, doctree):  # On pages with a panel only
    if "data-playground" in context.get("body", ""):
        app.add_js_file("playground.js", loading_method="defer")
        app.add_css_file("playground.css")


def setup(app):
    app.add_html_math_renderer("mathml", _math("inline", "{}"), _math("block", '<div class="math">{}</div>'))
    app.connect("html-page-context", _levels, priority=900)  # after furo
    app.connect("builder-inited", _playground_files)
    app.connect("html-page-context", _load_playground)
