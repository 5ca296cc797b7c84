"""A study page: what is written, tabulated and drawn is shown, and kept as files of the report."""

import json

import pandas as pd
import pytest
from matplotlib.pyplot import close, subplots
from PIL import Image

from uetrust.report.pages import FEWEST_TO_JUDGE, Page, reduced_copy

TABLE = pd.DataFrame(dict(name=["a", "b", "c"], value=[1 / 3, 2 / 3, 1.0], other=[1, 2, 3]))


@pytest.fixture
def page(tmp_path):
    return Page("mine", "smoke", str(tmp_path))


def test_an_empty_sentence_is_passed_over_and_the_first_of_an_answer_is_kept(page):
    assert page.say("", "") is None and page.say("One.", "", "Two.").data == "One.\n\nTwo."
    assert page.answer("", "Yes.", "Because.").data == "Yes.\n\nBecause." and page.answered == "Yes."
    assert page.sentences == ["One.", "Two.", "Yes.", "Because."]


def test_a_table_is_written_whole_and_shown_in_part(page):
    shown = page.table(TABLE, caption="Values.", columns=["name", "value"], rows=2, digits=1)
    assert shown.to_dict("list") == dict(name=["a", "b"], value=[0.3, 0.7])
    written = pd.read_csv(page.out / "tables" / "mine.csv")
    assert list(written) == list(TABLE) and written["value"].tolist() == pytest.approx(
        TABLE["value"].tolist()
    )
    page.table(TABLE, "unseen")
    assert page.tables == dict(mine="Values."), "without a caption the report does not show it"


def test_a_figure_has_its_numbers_next_to_it(page):
    figure, axes = subplots()
    axes.plot([1, 2], [3, 4])
    shown = page.figure(axes, "lines", "Lines.", TABLE)
    close(figure)
    assert page.figures == dict(lines="Lines.") and shown.data[:4] == b"\x89PNG"
    assert (page.out / "figures" / "lines.png").exists()
    assert len(pd.read_csv(page.out / "figures" / "lines.csv")) == 3
    assert page.picture("figures/lines").data == shown.data


@pytest.mark.parametrize("texts, banner", [(8, True), (FEWEST_TO_JUDGE - 1, True), (FEWEST_TO_JUDGE, False)])
def test_a_page_with_few_texts_says_that_it_decides_nothing(page, texts, banner):
    said = f"{texts} texts: this run shows that the code runs; it decides nothing."
    assert page.opening("summaries", texts).data.startswith(said) == banner
    assert (said in json.loads(page.close("Mine").read_text())["text"]) == banner


def test_a_page_that_counts_no_texts_has_no_banner(page):
    assert page.opening("the printed tables").data.startswith("Profile") and page.sentences == []


def test_a_chapter_holds_what_the_page_kept(page):
    page.opening("three texts")
    page.answer("Yes.")
    page.table(TABLE, caption="Values.")
    kept = json.loads(page.close("What is mine?").read_text())
    assert "What is mine?" in kept.values() and "three texts" in kept.values()
    assert "mine" in str(kept) and "Yes." in str(kept)


def test_a_copy_is_small_and_the_file_stays(tmp_path):
    path = tmp_path / "wide.png"
    Image.effect_noise((2200, 400), 90).convert("RGB").save(path)
    before = path.read_bytes()
    shown = reduced_copy(path, colors=8)
    (tmp_path / "shown.png").write_bytes(shown.data)
    small = Image.open(tmp_path / "shown.png")
    assert small.size == (1100, 200) and len(small.getcolors()) <= 8
    assert path.read_bytes() == before and len(shown.data) < len(before)
