"""Fixtures of several files of this folder."""

import json

import pandas as pd
import pytest

from tests.helpers.sites import EVIL
from uetrust.report.site.write import write_report


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    "A report of a run that holds one chapter, whose texts are hostile, and the ledger"
    from matplotlib.pyplot import subplots

    from uetrust.report.chapters import save_correlations  # noqa: F401
    from uetrust.report.pages import Page as Chapter

    out = tmp_path_factory.mktemp("run")
    page = Chapter("human", "smoke", str(out))
    page.opening(f"texts {EVIL}, n = 3")
    page.say(f"An inventory {EVIL}.")
    page.answer(f"The answer {EVIL}, 0.5 [0.4, 0.6], by `make {EVIL}` with a_score_name.")
    rows = pd.DataFrame(dict(label=[EVIL, "b"], value=[0.1, 0.5], lo=[0, 0.4], hi=[0.2, 0.6]))
    page.figure(subplots(figsize=(12, 3))[0], caption=f"A figure {EVIL}", numbers=rows)
    page.table(rows, caption=f"A table {EVIL}")
    many = pd.DataFrame(dict(name=[f"text{i}" for i in range(40)], value=range(40)))
    page.table(many, "many", caption="A long table")
    page.close(f"A title {EVIL}")
    (out / "notebooks").mkdir()
    (out / "notebooks" / "human.ipynb").write_text(json.dumps(dict(cells=[], metadata={})))
    write_report("smoke", out)
    return out / "report"
