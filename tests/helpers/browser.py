"""What a real browser finds wrong with a page: Debian's Chromium, driven by Playwright, without a network."""

import os
import shutil
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urldefrag, urlsplit

import pytest

from tests.helpers.paths import ROOT

SITE = Path(os.environ.get("UETRUST_SITE", ROOT / "docs" / "_build" / "html"))
MAX_SHIFT = 0.1  # Sum of layout shifts; below .1 a page counts as steady
WIDTHS = (1280, 390)
HELP = (
    "Chromium is missing: apt-get install chromium, or name another one in the variable CHROMIUM; "
    "Playwright comes with the extra test"
)

WATCH_SHIFT = """
window.layoutShift = 0;
new PerformanceObserver(list => {
  for (const entry of list.getEntries()) if (!entry.hadRecentInput) window.layoutShift += entry.value;
}).observe({type: "layout-shift", buffered: true});
"""
SETTLE = "() => new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done)))"
OVERFLOW = """() => {
  const wide = document.documentElement.clientWidth;
  if (document.documentElement.scrollWidth <= wide && document.body.scrollWidth <= wide) return [];
  const boxed = e => e.parentElement && e.parentElement !== document.body &&
    (getComputedStyle(e.parentElement).overflowX !== "visible" || boxed(e.parentElement));
  const found = [...document.body.querySelectorAll("*")]
    .filter(e => e.getBoundingClientRect().right + scrollX > wide + 1 && !boxed(e));
  return [`${document.documentElement.scrollWidth} px wide`,
    ...found.slice(-2).map(e => e.outerHTML.slice(0, 120))];
}"""


def missing(what):
    "Skip, but fail where continuous integration promised the browser"
    (pytest.fail if os.environ.get("CI") else pytest.skip)(what)


def chromium():
    "Path of Chromium"
    return os.environ.get("CHROMIUM") or shutil.which("chromium") or missing(HELP)


class Watched:
    "A page of the browser that remembers what went wrong since it was last asked"

    def __init__(self, browser):
        self.context = browser.new_context(viewport={"width": 1280, "height": 900})
        self.context.add_init_script(WATCH_SHIFT)
        self.page = self.context.new_page()
        self.page.on("console", self.on_console)
        self.page.on("pageerror", lambda error: self.wrong.append(f"error: {error.message}"))
        self.page.on("request", self.on_request)
        self.page.on("response", self.on_response)
        self.context.set_offline(True)
        self.wrong, self.sizes = [], {}

    def on_console(self, message):
        if message.type in ("error", "warning"):
            self.wrong.append(f"console: {message.text}")

    def on_request(self, request):
        if not request.url.startswith(("file:", "data:", "blob:", "http://127.0.0.1")):
            self.wrong.append(f"asks outside: {request.url[:120]}")

    def on_response(self, response):
        if response.url.startswith("file:"):
            self.sizes[response.url] = Path(unquote(urlsplit(response.url).path)).stat().st_size

    def open(self, path, width=1280, scheme="light"):
        self.wrong, self.sizes = [], {}
        self.page.set_viewport_size({"width": width, "height": 900})
        self.page.emulate_media(color_scheme=scheme)
        self.page.goto(path if str(path).startswith("http") else Path(path).as_uri())
        self.page.evaluate(SETTLE)
        return self.page


FURNITURE = ["header", "footer"]  # The same on every page of the site


def accessibility(page, only=None, leave=()):
    "Serious and critical findings of axe, with the first place of each; `only` some rules, `leave` parts out"
    from axe_playwright_python.sync_playwright import Axe

    options = {"resultTypes": ["violations"], "preload": False} | ({"runOnly": only} if only else {})
    found = Axe().run(page, {"exclude": [[part] for part in leave]}, options).response["violations"]
    return [
        f"axe {v['id']} ({len(v['nodes'])}): {v['nodes'][0]['html'][:160]} "
        f"{v['nodes'][0]['failureSummary'].splitlines()[-1].strip()[:160]}"
        for v in found
        if v["impact"] in ("serious", "critical")
    ]


def loaded_problems(watched, path, width, scheme, *only_and_leave):
    "A page loaded at one width in one scheme"
    page = watched.open(path, width, scheme)
    found = [f"overflows: {what}" for what in page.evaluate(OVERFLOW)]
    found += accessibility(page, *only_and_leave)
    if (shift := page.evaluate("layoutShift")) >= MAX_SHIFT:
        found.append(f"layout shift {shift:.2f}")
    return [f"{width} px, {scheme}: {what}" for what in [*watched.wrong, *found]]


def page_problems(watched, path):
    "What is wrong with a page at both widths and in both schemes"
    found = []
    for width in WIDTHS:
        found += loaded_problems(watched, path, width, "light")
        watched.page.emulate_media(color_scheme="dark")
        dark = accessibility(watched.page, ["color-contrast"])
        found += [f"{width} px, dark: {what}" for what in dark]
    return found


def text_problems(watched, path):
    "The same, sooner: each scheme at one width, without what all pages share"
    wide = loaded_problems(watched, path, 1280, "light", None, FURNITURE)
    return wide + loaded_problems(
        watched,
        path,
        390,
        "dark",
        ["color-contrast", "scrollable-region-focusable"],
        [*FURNITURE, ".code"],
    )


class Links(HTMLParser):
    "Where a page leads, and the names that others may lead to"

    def __init__(self, text):
        super().__init__()
        self.to, self.names = set(), {"", "top"}
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        for name, value in attrs:
            if name in ("href", "src") and value and not urlsplit(value).scheme:
                self.to.add(value)
            if name == "id" or (tag == "a" and name == "name"):
                self.names.add(value)


def link_problems(folder):
    "Links of the pages in a folder that lead nowhere, out of the folder, or to a name that is not there"
    folder = Path(folder).resolve()
    pages = {path: Links(path.read_text()) for path in sorted(folder.rglob("*.html"))}
    found = []
    for path, links in pages.items():
        for link in sorted(links.to):
            to, name = urldefrag(link)
            file = (path.parent / unquote(urlsplit(to).path)).resolve() if to else path
            if folder not in file.parents or not file.is_file():
                found.append(f"{path.relative_to(folder)}: {link} leads nowhere in the folder")
            elif file in pages and unquote(name) not in pages[file].names:
                found.append(f"{path.relative_to(folder)}: {link}: no such place on the page")
    return found
