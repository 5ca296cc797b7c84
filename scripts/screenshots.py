"""screenshots.py [SITE [FOLDER]]: pages of the site as a laptop and a phone show them, into docs/screens.

Wants `make reproduce` and `make docs` before, and Chromium.
"""

import os
import shutil
import sys
from io import BytesIO
from pathlib import Path

from PIL import Image

ROOT = Path(__file__).resolve().parents[1]
PAGES = {  # Name of the picture -> page of the site, place on it
    "first_page": ("index.html", "body"),
    "chapter": ("cross--bulletin.html", "body"),
    "paper": ("paper-he2024.html", "body"),
    "gallery": ("methods.html", "body"),
    "lesson": ("lessons/1_basics/01_what_is_prr.html", "[data-playground]"),
}
WINDOWS, HEIGHT = {1280: "light", 390: "dark"}, 900  # Widths in pixels and their schemes
SHOWN, GAP = 560, 16  # Height of a picture, and the space between its two halves


def shot(page, width, scheme, place):
    "What a window of one width shows in a scheme"
    page.set_viewport_size(dict(width=width, height=HEIGHT))
    page.emulate_media(color_scheme=scheme)
    page.reload()
    page.evaluate(
        "place => document.querySelector(place).scrollIntoView({behavior: 'instant', block: 'start'})", place
    )
    page.wait_for_timeout(500)  # Pictures that load late
    window = Image.open(BytesIO(page.screenshot())).convert("RGB")
    return window.resize((width * SHOWN // HEIGHT, SHOWN), Image.Resampling.LANCZOS)


def side_by_side(windows):
    "One picture of several of equal height"
    both = Image.new("RGB", (sum(w.width + GAP for w in windows) - GAP, SHOWN), "#888")
    left = 0
    for window in windows:
        both.paste(window, (left, 0))
        left += window.width + GAP
    return both


def main(site=ROOT / "docs" / "_build" / "html", folder=ROOT / "docs" / "screens"):
    if lost := [name for name, _ in PAGES.values() if not (Path(site) / name).is_file()]:
        sys.exit(f"{site} lacks {', '.join(lost)}: make reproduce, then make docs")
    from playwright.sync_api import sync_playwright

    chromium = os.environ.get("CHROMIUM") or shutil.which("chromium") or sys.exit("apt-get install chromium")
    Path(folder).mkdir(parents=True, exist_ok=True)
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
        page = browser.new_page()
        for name, (address, place) in PAGES.items():
            page.goto((Path(site).resolve() / address).as_uri())
            picture = side_by_side([shot(page, *window, place) for window in WINDOWS.items()])
            picture.save(Path(folder) / f"{name}.webp", quality=60, method=6)
        browser.close()


if __name__ == "__main__":
    main(*sys.argv[1:])
