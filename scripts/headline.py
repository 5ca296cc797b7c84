"""Write what the demo found into the README, between its marks."""

import re
from pathlib import Path

import pandas as pd

from uetrust.studies.cross import selection_headline

readme = Path("README.md")
said = selection_headline(pd.read_csv("data/demo_picks.csv"))
text, n = re.subn(
    r"(<!-- demo -->\n).*?(\n<!-- end -->)",
    lambda m: m[1] + said + m[2],
    readme.read_text(encoding="utf-8"),
    flags=re.S,
)
if n != 1:
    raise SystemExit(f"README.md has {n} places between '<!-- demo -->' and '<!-- end -->', and needs one")
readme.write_text(text, encoding="utf-8")
