"""Pictures of the site in the project's own pages: there, shown, small, and made by one command."""

import json
import re
import subprocess
import sys

import pytest
from PIL import Image

from tests.helpers.browser import ROOT, chromium

SCRIPT = ROOT / "scripts" / "screenshots.py"
SCREENS = ROOT / "docs" / "screens"
NAMES = ["chapter", "first_page", "gallery", "lesson", "paper"]
SIZE = (1280 * 560 // 900 + 16 + 390 * 560 // 900, 560)  # A laptop's window beside a phone's
LEAST, MOST = 20_000, 300_000  # Bytes of each, and of all together


def test_every_picture_is_there_and_all_are_small():
    sizes = {path.name: path.stat().st_size for path in sorted(SCREENS.iterdir())}
    assert list(sizes) == [f"{name}.webp" for name in NAMES]
    assert min(sizes.values()) > LEAST and sum(sizes.values()) < MOST, sizes
    assert {Image.open(SCREENS / name).size for name in sizes} == {SIZE}


def test_every_picture_is_shown_with_a_sentence():
    cells = json.loads((ROOT / "nbs" / "where_things_are.ipynb").read_text(encoding="utf-8"))["cells"]
    text = "\n".join("".join(cell["source"]) for cell in cells if cell["cell_type"] == "markdown")
    shown = re.findall(r"!\[([^\]]+)\]\(\.\./docs/screens/(\w+)\.webp\)", text)
    assert sorted(name for _, name in shown) == NAMES and all(len(alt) > 30 for alt, _ in shown)


def test_the_script_says_what_is_missing(tmp_path):
    ran = subprocess.run([sys.executable, SCRIPT, tmp_path, tmp_path], capture_output=True, text=True)
    assert ran.returncode == 1 and "lacks index.html" in ran.stderr and "make docs" in ran.stderr


def test_the_script_makes_a_picture_of_every_page_at_both_widths(tmp_path):
    "A page that is blue where it is wide and red where it is narrow"
    pytest.importorskip("playwright")
    chromium()
    html = "<style>body {margin: 0; background: blue} @media (max-width: 500px) {body {background: red}}"
    for page in re.findall(r'"([\w/-]+\.html)"', SCRIPT.read_text()):
        (tmp_path / page).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / page).write_text(f"{html}</style><p data-playground>Text")
    subprocess.run([sys.executable, SCRIPT, tmp_path, tmp_path / "screens"], check=True)
    made = sorted((tmp_path / "screens").iterdir())
    assert [path.stem for path in made] == NAMES
    for path in made:
        picture = Image.open(path).convert("RGB")
        (r1, _, b1), (r2, _, b2) = (picture.getpixel((x, 500)) for x in (400, SIZE[0] - 60))
        assert picture.size == SIZE and b1 > 200 > 50 > r1 and r2 > 200 > 50 > b2, path
