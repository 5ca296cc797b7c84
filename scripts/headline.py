"""Write what the large run says into the README, between its marks, and draw its figure"""

import re
from pathlib import Path

from uetrust.report.plots import plot_interval_panels, save_figure
from uetrust.studies.world import world_headline

readme = Path("README.md")
said, rows = world_headline()
text, n = re.subn(
    r"(<!-- world -->\n).*?(\n<!-- end -->)",
    lambda m: m[1] + said + m[2],
    readme.read_text(encoding="utf-8"),
    flags=re.S,
)
if n != 1:
    raise SystemExit(f"README.md has {n} places between '<!-- world -->' and '<!-- end -->', and needs one")
readme.write_text(text, encoding="utf-8")
save_figure(plot_interval_panels(rows, "PRR lost by choosing a method with 100 texts"), Path("docs/regret"))
