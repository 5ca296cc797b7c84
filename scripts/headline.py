"""Write what people and the large run say into the README, between its marks, and draw the figures"""

import re
from pathlib import Path

from uetrust.papers.bulletins.world import world_headline
from uetrust.papers.people.plots import people_headline
from uetrust.report.plots import plot_interval_panels, save_figure


def fill(text, mark, said):
    "The text with a sentence between the comments MARK and end"
    pattern = rf"(<!-- {mark} -->\n).*?(\n<!-- end -->)"
    text, n = re.subn(pattern, lambda m: m[1] + said + m[2], text, flags=re.S)
    if n != 1:
        raise SystemExit(
            f"README.md has {n} places between '<!-- {mark} -->' and '<!-- end -->', and needs one"
        )
    return text


readme, people, (world, rows) = Path("README.md"), people_headline(), world_headline()
text = fill(readme.read_text(encoding="utf-8"), "people", people.sentence)
readme.write_text(fill(text, "world", world), encoding="utf-8")
save_figure(people.figure, Path("docs/people"))
save_figure(plot_interval_panels(rows, "PRR lost by choosing a method with 100 texts"), Path("docs/regret"))
for name in ("people", "regret"):  # The README shows the PNG only
    Path(f"docs/{name}.svg").unlink()
