"""Every page in a real browser: no error, no overflow, no request outside, accessible in both schemes."""

import html
import subprocess
import sys

import pytest

from tests.helpers.browser import (
    FURNITURE,
    OVERFLOW,
    SITE,
    WIDTHS,
    accessibility,
    chromium,
    link_problems,
    missing,
    page_problems,
    text_problems,
)

FIRST_PAGE = 1_000_000  # Bytes that the first page may load before anybody scrolls


# The checks notice what they are for
GOOD = """<!doctype html><html lang="en"><meta charset="utf-8"><title>Page</title>
<meta name="viewport" content="width=device-width,initial-scale=1">
<style>:root {color-scheme: light dark} body {margin: 0; background: light-dark(#fff, #111)}</style>
<main><h1>Page</h1><p>Text</p>PLACE</main>"""
MOVE = "() => document.querySelector('h1').style.marginTop = '300px'"
FAULTS = {
    "console: wrong": "<script>console.error('wrong')</script>",
    "error: nobody is not defined": "<script>nobody()</script>",
    "asks outside: https://cdn.example/a.js": "<script src='https://cdn.example/a.js'></script>",
    "overflows: 2000 px wide": "<div style='width: 2000px; height: 1px'></div>",
    "overflows: 700 px wide": "<div style='width: 700px; height: 1px'></div>",
    "axe image-alt": "<img src='data:image/gif;base64,R0lGODlhAQABAAAAACw=' width=1 height=1>",
    "light: axe color-contrast": "<p style='color: light-dark(#ccc, #fff)'>pale</p>",
    "dark: axe color-contrast": "<p style='color: light-dark(#000, #333)'>pale</p>",
    "layout shift": "<p style='height: 500px'>Text</p><script>setTimeout(MOVE, 50)</script>",
}


@pytest.mark.parametrize("says", FAULTS)
def test_a_fault_of_a_page_is_named(watched, tmp_path, says):
    "Each fault is found, and a page without it is clean"
    page = tmp_path / "page.html"
    page.write_text(GOOD.replace("PLACE", FAULTS[says].replace("MOVE", MOVE)))
    found = page_problems(watched, page)
    assert any(says in what for what in found), found
    if "700 px" in says:
        assert all(what.startswith("390 px") for what in found)
    page.write_text(GOOD.replace("PLACE", ""))
    assert page_problems(watched, page) == []


def test_links_that_lead_nowhere_are_named(tmp_path):
    links = "<a href='b.html#there'>1</a><a href='b.html#gone'>2</a><a href='c.html'>3</a><a href='..'>4</a>"
    (tmp_path / "a.html").write_text(links + "<a href='https://a.example'>5</a><a href='#top'>6</a>")
    (tmp_path / "b.html").write_text("<p id=there>")
    assert link_problems(tmp_path) == [
        "a.html: .. leads nowhere in the folder",
        "a.html: b.html#gone: no such place on the page",
        "a.html: c.html leads nowhere in the folder",
    ]


@pytest.mark.parametrize("ci,outcome", [("", pytest.skip.Exception), ("1", pytest.fail.Exception)])
def test_without_chromium_only_continuous_integration_fails(monkeypatch, ci, outcome):
    for name, value in dict(CI=ci, CHROMIUM="", PATH="").items():
        monkeypatch.setenv(name, value)
    with pytest.raises(outcome, match="apt-get install chromium"):
        chromium()


# Text of other people
def test_markup_in_a_table_stays_text(watched, tmp_path):
    "A column, a document and an id that are scripts: none runs, and the page shows them as they are"
    script = "<script>window.ran = true</script>"
    image = "<img src=x onerror='window.ran = true'>"
    rows = "".join(f'"{image}{i}","{i % 7}","{i % 5}","{script}"\n' for i in range(40))
    (tmp_path / "scores.csv").write_text(f'id,"human{script}","msp{image}",doc\n{rows}')
    command = [sys.executable, "-m", "uetrust", "audit", tmp_path / "scores.csv", "--id", "id"]
    command += ["--quality", f"human{script}", "--uncertainty", f"msp{image}"]
    subprocess.run([*command, "--html", tmp_path / "page.html"], check=True, capture_output=True)
    page = watched.open(tmp_path / "page.html")
    assert page.evaluate("window.ran") is None and watched.wrong == []
    assert script in page.inner_text("body") and html.escape(script) in page.content().replace('"', "&quot;")


# The site
def site_pages():
    return [str(path.relative_to(SITE)) for path in sorted(SITE.rglob("*.html"))]


@pytest.mark.browser
def test_the_site_is_there():
    if not site_pages():
        missing(f"no pages in {SITE}: make docs")


def one_of_each_folder():
    return sorted({page.rpartition("/")[0]: page for page in reversed(site_pages())}.values())


@pytest.mark.browser
@pytest.mark.parametrize("page", site_pages())
def test_a_page_of_the_site(watched, page):
    assert text_problems(watched, SITE / page) == []


def pages_with_parts():
    return [page for page in site_pages() if 'class="parts"' in (SITE / page).read_text()]


@pytest.mark.browser
@pytest.mark.parametrize("page", sorted({"index.html", *pages_with_parts(), *one_of_each_folder()}))
def test_a_page_whole_at_both_widths_and_in_both_schemes(watched, page):
    "Navigation and the colours of code, on the first pages, those with parts, and one page of each folder"
    assert page_problems(watched, SITE / page) == []


@pytest.mark.browser
@pytest.mark.parametrize("page", pages_with_parts())
def test_every_part_of_a_page_fits_when_it_is_chosen(watched, page):
    for width in WIDTHS:
        shown = watched.open(SITE / page, width)
        for name in shown.locator(".pick a").all_inner_texts():
            shown.get_by_role("link", name=name, exact=True).click()
            assert shown.locator(".parts > section:visible").count() == 1
            found = [*shown.evaluate(OVERFLOW), *accessibility(shown, None, FURNITURE), *watched.wrong]
            assert found == [], (width, name)


@pytest.mark.browser
def test_the_first_page_is_light(watched):
    "What it loads before anybody scrolls"
    watched.open(SITE / "index.html")
    assert 10_000 < sum(watched.sizes.values()) < FIRST_PAGE, watched.sizes


@pytest.mark.browser
def test_links_of_the_site_lead_somewhere():
    assert link_problems(SITE) == []
