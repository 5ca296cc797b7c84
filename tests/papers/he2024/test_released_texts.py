"""Tables 9 to 11 on stored summaries: dialogues of our own through the commands, and TofuEval's own files."""

import pytest

from tests.helpers.tofueval import put_project, put_tofueval
from uetrust.cli.cli import main
from uetrust.core import settings
from uetrust.data.datasets import stored_texts
from uetrust.data.download import has_file
from uetrust.data.loaders import TOFU_ERRORS, tofueval, tofueval_dialogue_ratios
from uetrust.evaluation.prr import prr
from uetrust.generation.bank import read_bank
from uetrust.papers.bulletins import inputs
from uetrust.papers.he2024 import released_texts
from uetrust.papers.he2024.published import printed_tables

BANK = released_texts.RELEASED_BANK
real = pytest.mark.skipif(
    not has_file("tofueval/mediasum_factual_eval_dev.csv"), reason="TofuEval is not at hand"
)


@pytest.fixture
def project(tmp_path, monkeypatch):
    "Fifteen dialogues with annotations, in a checkout whose profile names their bank"
    (tmp_path / "checkout").mkdir()
    world, rows = put_tofueval(tmp_path / "mirror", monkeypatch)
    put_project(tmp_path / "checkout", monkeypatch)
    yield rows
    monkeypatch.undo()
    for cached in (settings.root, settings._read):
        cached.cache_clear()


def test_the_command_copies_stored_texts_and_the_tables_agree_with_the_marks(project, capsys):
    "Where more summaries are about something else, people marked more, and the summaries agree less."
    assert main(["bank", "fill", BANK, "--profile", "own"]) == 0
    assert capsys.readouterr().out.startswith("ok ")
    plan = inputs.bank_plan("own", BANK)
    bank = read_bank(plan.folder / "texts")
    of_first = bank[bank["sample"] == "d0"]
    given = project.loc[project["doc_id"] == "d0", "summ_sent"].tolist()
    assert of_first["text"].tolist() == [given[0], *given]
    assert of_first["kind"].tolist() == ["greedy"] + ["sample"] * 6
    assert not bank["logprobs"].notna().any()

    inputs.page_inputs("own", [BANK])
    quality, uncertainty = inputs.ordering_scores("own", [BANK])[BANK]
    ratios = inputs.error_shares("own", [BANK])[BANK]
    assert ratios["EI"].to_dict() == pytest.approx({f"d{k}": k % 5 / 6 for k in range(15)})
    run = released_texts.human_run(quality, uncertainty, ratios)
    table = run.tables["T11"]["EI"]
    assert list(table.index) == ["NumSets", "ECC", "LexSim", "EigV"]
    assert table[["NumSets", "LexSim", "EigV"]].min() > 0.6
    cells = released_texts.human_cells(run).set_index(["table", "row", "column"])
    row, wrong = cells.loc[("T11", "LexSim", "EI")], ratios.loc[uncertainty.index, "EI"]
    assert row["own"] == pytest.approx(prr(1 - wrong, uncertainty["lex_sim"]).value)
    assert row["se"] > 0 and row["printed"] == printed_tables()["T11"].loc["LexSim", "EI"]
    assert {"ROUGE-L", "SummaC", "UniEval (Consistency)"} <= set(run.tables["T9"].index)
    figures = released_texts.human_figures(run)
    assert {number: len(found) for number, found in figures.items()}[40] == 6
    readings = released_texts.stored_text_readings(tofueval())
    facts = released_texts.rerun_facts(run, readings)
    assert facts.metrics == len(run.tables["T10"]) < len(quality.columns) and "ROUGE-L" not in facts.missing


def test_without_dialogues_one_line_says_what_is_missing(tmp_path, monkeypatch, capsys):
    (tmp_path / "checkout").mkdir()
    put_tofueval(tmp_path / "mirror", monkeypatch, dialogues=False)
    put_project(tmp_path / "checkout", monkeypatch)
    assert main(["bank", "fill", BANK, "--profile", "own"]) == 2
    error = capsys.readouterr().err
    assert "mediasum/news_dialogue.json" in error and error.count("\n") == 1
    scores = released_texts.scores_without_dialogues()
    assert (list(scores.quality), list(scores.uncertainty)) == (["rouge_l"], ["lex_sim"])
    assert {"num_sets", "ecc", "eigv", "summac_he2024"} <= set(scores.missing)
    assert scores.quality["rouge_l"]["d0"] == 1 > scores.quality["rouge_l"]["d1"] > 0.8  # A word less
    monkeypatch.undo()
    for cached in (settings.root, settings._read):
        cached.cache_clear()


@real
def test_all_summaries_of_a_dialogue_come_nearest_to_the_printed_row():
    found = released_texts.stored_text_readings(tofueval())
    assert found["reading"][0] == "all summaries of a dialogue, their mean errors"
    assert found["off"][0] < 0.05 and found["off"].iloc[-1] > 0.3


@real
def test_the_real_summaries_are_those_of_the_files():
    texts = stored_texts("tofueval")
    assert len(texts) == 100 and {len(given) for given in texts.values()} <= {*range(11, 19)}
    first = texts["NPR-5615"][0]
    assert first.startswith("The Pentagon is developing a new fleet of helicopters")
    ratios = tofueval_dialogue_ratios(tofueval())
    assert list(ratios) == list(TOFU_ERRORS) and ratios.shape == (100, 7)
    assert ((ratios >= 0) & (ratios <= 1)).all(axis=None)


@real
def test_the_released_sign_of_table_10_is_nearer_to_print():
    scores = released_texts.scores_without_dialogues()
    run = released_texts.human_run(scores.quality, scores.uncertainty, tofueval_dialogue_ratios(tofueval()))
    off = released_texts.sign_of_table_10(run)["off"]
    assert off["as released"] < 0.25 < 0.5 < off["negated, as the paper says"]
    assert not released_texts.human_cells(run)["equal"].any()
