"""What people say, in the headline and in the README."""

import pandas as pd

from uetrust.core.settings import root
from uetrust.papers.people import plots as figures
from uetrust.report.plots import save_figure


def test_the_headline_is_made_from_the_table_of_a_run(tmp_path, made):
    renamed = made.table.replace(dict(metric=dict(turned="hter", constant="metrics")))
    renamed.loc[renamed["metric"] == "metrics", ["value", "lo", "hi"]] = 0.25
    rows = [renamed.assign(pair=pair) for pair in ("a-b", "pooled")]
    pd.concat(rows).to_csv(tmp_path / "people_regret.csv", index=False)
    front = figures.people_headline(tmp_path / "people_regret.csv", n=50)
    value = renamed.set_index(["n", "metric"])["value"]
    assert "0.250 [0.250, 0.250] less PRR" in front.sentence
    assert f"{value[50, 'random']:.3f} [" in front.sentence
    assert "not summaries" in front.sentence and "translation" in front.limit and front.figure.axes


def test_the_readme_says_and_shows_what_people_say(tmp_path):
    front = figures.people_headline()
    readme = (root() / "README.md").read_text(encoding="utf-8")
    assert f"<!-- people -->\n{front.sentence}\n<!-- end -->" in readme
    save_figure(front.figure, tmp_path / "people")
    assert (tmp_path / "people.png").read_bytes() == (root() / "docs" / "people.png").read_bytes()
