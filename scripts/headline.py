"""Write the verdict and the findings into the README, between its marks, and draw its figure."""

import re
from pathlib import Path

from uetrust.papers.people.overview import overview_headlines, overview_verdict, stored_overview
from uetrust.report.page import overview_figure
from uetrust.report.plots import save_figure


def fill(text, mark, said):
    "The text with a sentence between the comments MARK and end"
    pattern = rf"(<!-- {mark} -->\n).*?(\n<!-- end -->)"
    text, n = re.subn(pattern, lambda m: m[1] + said + m[2], text, flags=re.S)
    if n != 1:
        raise SystemExit(
            f"README.md has {n} places between '<!-- {mark} -->' and '<!-- end -->', and needs one"
        )
    return text


readme, people = Path("README.md"), stored_overview()
text = fill(readme.read_text(encoding="utf-8"), "verdict", overview_verdict(people))
listed = "\n".join(f"- {sentence}" for sentence in overview_headlines(people).values())
readme.write_text(fill(text, "findings", listed), encoding="utf-8")
save_figure(overview_figure(people), Path("docs/people"))
Path("docs/people.svg").unlink()  # The README shows the PNG only
