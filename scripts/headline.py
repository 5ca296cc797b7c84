"""Write what people and the large run say into the README, between its marks, and draw the figures."""

import re
from pathlib import Path

from uetrust.papers.bulletins.world import world_headline
from uetrust.papers.people.overview import OUTPUT_KINDS, overview_sentences, stored_overview
from uetrust.report.page import overview_figure
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


readme, (world, rows), people = Path("README.md"), world_headline(), stored_overview()
said = overview_sentences(people).items()
listed = "\n".join(f"- {sentence} *Limit: {OUTPUT_KINDS[kind].limit}.*" for kind, sentence in said)
text = fill(readme.read_text(encoding="utf-8"), "people", listed)
readme.write_text(fill(text, "world", world), encoding="utf-8")
save_figure(overview_figure(people), Path("docs/people"))
save_figure(plot_interval_panels(rows, "PRR lost by choosing a method with 100 texts"), Path("docs/regret"))
for name in ("people", "regret"):  # The README shows the PNG only
    Path(f"docs/{name}.svg").unlink()
