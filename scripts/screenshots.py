"""screenshots.py [FOLDER]: pictures of the site and of a lesson in docs/screenshots, at 1,280 and 390 px."""

import sys
from pathlib import Path

from PIL import Image

ROOT = Path(__file__).resolve().parents[1]
SITE, REPORT = ROOT / "docs" / "_build" / "html", ROOT / "runs" / "demo" / "report"
