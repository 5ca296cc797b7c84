"""Pages on banks and on He et al.: inputs are made once, tables and sentences say what a hand count says."""

import json

import nbformat
import numpy as np
import pandas as pd
import pytest

from tests.helpers.paths import ROOT
from uetrust.core.scores import wide_table
from uetrust.papers.bulletins import decisions, inputs, repeats, sentences, tables
from uetrust.papers.he2024 import own_tables, page_tables
from uetrust.papers.he2024 import sentences as paper_sentences

BANK = "bulletin--tiny-bart"
PAGES = sorted(
    path
    for folder in ("banks", "he2024")
    for path in (ROOT / "nbs" / "experiments" / folder).glob("[0-9]*.ipynb")
)


def tidy(name, values):
    texts = [f"t{i}" for i in range(len(values))]
    return pd.DataFrame(dict(sample=texts, name=name, value=values, note=""))


@pytest.fixture
def toy_bank(tmp_path, monkeypatch):
    "Scores of twelve texts in the folder of a profile; making anything of a bank is an error"
    monkeypatch.setattr(inputs, "out_dir", lambda profile: tmp_path)
    rng = np.random.default_rng(0)
    truth = pd.Series(rng.random(12), [f"t{i}" for i in range(12)], name="truth")
    methods = pd.concat([tidy("msp", -truth.to_numpy()), tidy("mte", rng.random(12)), tidy("md", [1.0] * 12)])
    metrics = pd.concat([tidy("rouge_l", truth.to_numpy() ** 2), tidy("bert_score_f1", rng.random(12))])
    metrics = metrics[metrics["name"].isin(list(inputs.reg))]
    (tmp_path / "scores").mkdir()
    for frame, end, lacks in ((methods, "", ["own"]), (metrics, "_quality", ["a model", "a reference"])):
        frame.attrs["missing"] = {"p_true" if not end else "ctc": lacks}
        frame.to_parquet(tmp_path / "scores" / f"{BANK}{end}.parquet", index=False)
    monkeypatch.setattr(inputs, "truth_of", lambda plan: truth)
    monkeypatch.setattr(
        inputs, "run_pipeline", lambda *given, **options: pytest.fail("the bank was made again")
    )
    return tmp_path, truth


def test_stored_scores_are_read_and_not_made(toy_bank):
    found = inputs.method_scores("smoke", BANK)
    assert list(wide_table(found)) == ["msp", "mte", "md"]
    assert inputs.lacking(found).values.tolist() == [["p_true", "own"]]
    assert inputs.lacking(inputs.quality_scores("smoke", BANK), "; ")["lacks"].tolist() == [
        "a model; a reference"
    ]


def test_missing_scores_are_made_once(toy_bank, monkeypatch):
    folder, _ = toy_bank
    stored = inputs.method_scores("smoke", BANK)
    (folder / "scores" / f"{BANK}.parquet").unlink()
    made = []
    monkeypatch.setattr(inputs, "prepared_bank", lambda *names: made.append(names))
    monkeypatch.setattr(inputs, "score_methods", lambda plan: stored)
    for _ in range(2):
        pd.testing.assert_frame_equal(inputs.method_scores("smoke", BANK), stored)
    assert made == [("smoke", BANK)]


def test_tables_of_other_pages_are_made_once_and_then_read(toy_bank):
    folder, _ = toy_bank
    first = inputs.method_tables("smoke", BANK)
    path = folder / "tables" / f"methods--{BANK}_prr.csv"
    assert first["prr"].set_index("method")["value"].loc[["oracle", "msp"]].tolist() == pytest.approx([1, 1])
    path.write_text("method,value\nmine,0.5\n")
    assert inputs.method_tables("smoke", BANK)["prr"].values.tolist() == [["mine", 0.5]]


def test_the_cross_tables_name_what_orders_nothing_and_what_a_metric_picks(toy_bank):
    folder, _ = toy_bank
    found = inputs.cross_tables("smoke", BANK)
    assert found["left_out"].values.tolist() == [["method", "md", "the same for all texts"]]
    picks = found["picks"].set_index("metric")
    assert picks.at["rouge_l", "pick"] == "msp" and picks.at["rouge_l", "loss"] == 0
    assert set(found["designs"]["n"]) == {6} and "truth" in set(found["designs"]["metric"])
    times = {path: path.stat().st_mtime_ns for path in (folder / "tables").iterdir()}
    inputs.cross_tables("smoke", BANK)
    assert {path: path.stat().st_mtime_ns for path in (folder / "tables").iterdir()} == times and len(
        times
    ) == 4


def test_truth_stands_first_and_may_be_unknown(toy_bank):
    scores = inputs.cross_scores("smoke", BANK)
    assert scores.has_truth and list(scores.quality)[0] == "truth" and "truth" not in scores.dims
    unknown = inputs.paired_scores(inputs.method_scores("smoke", BANK), inputs.quality_scores("smoke", BANK))
    assert not unknown.has_truth and list(unknown.quality) == list(scores.dims)


def test_without_the_truth_sentences_about_it_are_empty():
    assert sentences.metric_choice_sentence(None, None) == sentences.length_share_sentence(None) == ""
    assert sentences.best_method_sentence(None) == sentences.best_metrics_sentence(None, None, None, 8) == ""
    assert sentences.design_sentences(None) == [] and sentences.subsample_sentence(BANK, None) == ""


def test_tied_methods_share_the_first_place():
    ranks = pd.DataFrame(
        [
            ("truth", "a", 0.5, 1.5, 1.5, 1.5),
            ("truth", "b", 0.5, 1.5, 1.5, 2.0),
            ("truth", "c", 0.1, 3, 2, 3),
        ],
        columns=["judged_by", "method", "value", "rank", "rank_lo", "rank_hi"],
    )
    first = tables.first_ranked(ranks)
    assert first[["method", "could_be_first"]].values.tolist() == [["a", 2]]
    assert "a (0.50; rank 1.5 to 1.5, 2 methods could be first)" in sentences.first_sentence(first)


def test_designs_show_equal_metrics_once():
    rows = [("a", 5, 0.3), ("b", 5, 0.3), ("c", 5, 0.1), ("truth", 5, 0.4)]
    trials = pd.DataFrame(rows, columns=["metric", "n", "true_prr"])
    assert tables.design_rows(trials)["label"].tolist() == ["truth", "a", "c"]


def test_a_bank_without_a_question_keeps_the_scores_of_the_base():
    base = pd.DataFrame(dict(msp=[1.0, 2], p_true=[0.1, 0.2]))
    asked = repeats.only_asked(dict(base=base, other=pd.DataFrame(dict(p_true=[0.9, 0.8], new=[1, 1]))))[
        "other"
    ]
    assert asked.to_dict("list") == dict(msp=[1.0, 2], p_true=[0.9, 0.8])


def test_a_profile_that_repeats_nothing_has_empty_tables():
    for function in (repeats.level_prr, repeats.paired_level_differences, repeats.level_halves):
        assert len(function({})) == 0
    assert repeats.seeded({}) == [] and sentences.half_sentences({}, pd.DataFrame(), pd.DataFrame()) == []


@pytest.mark.parametrize("domains,place", [(("x", "y"), "outdomain"), (("x", "x"), "halves")])
def test_thresholds_come_from_other_networks_when_there_are_two(domains, place):
    rng = np.random.default_rng(1)
    label = np.tile([0.0, 1], 15)
    rows = [
        pd.DataFrame(
            dict(
                dataset=name, document=range(30), label=label, msp=label + rng.random(30), mte=rng.random(30)
            )
        )
        for name in ("one", "two")
    ]
    labelled = decisions.Labelled(
        decisions.labelled_datasets(pd.concat(rows)), dict(zip(("one", "two"), domains)), []
    )
    about = decisions.decision_study(labelled, 2, 0)
    scores, averaged = decisions.focus_scores(about), decisions.averaged_sets(about)
    said = sentences.accuracy_sentences(about, scores, pd.DataFrame(), averaged)
    assert about.place == place and ("nothing is said about outdomain" in said[0]) == (place == "halves")
    assert any("On the mean of one, two" in text and sentences.LEARNED[place] in text for text in said)
    assert any("First by AUC is msp (method)" in text for text in said)
    assert sentences.left_out_sentences(about, scores, decisions.undefined_scores(about))[0].startswith(
        "By generator"
    )


def test_an_own_run_is_laid_out_in_the_names_of_the_paper(toy_bank):
    bank = own_tables.bank_of_table(own_tables.STAND_IN_MODELS)["T7"]
    scores = inputs.paired_scores(inputs.method_scores("smoke", BANK), inputs.quality_scores("smoke", BANK))
    prr = inputs.cross_prr(scores)
    errors = pd.DataFrame(dict(EI=np.tile([0.0, 0.5], 6), MR=0.0), scores.quality.index)
    run = page_tables.own_run(
        own_tables.STAND_IN_MODELS,
        {bank: own_tables.BankResult(prr, {}, {})},
        {bank: (scores.quality, scores.uncertainty)},
        {bank: errors},
    )
    assert run.errors == {bank: ["EI"]} and "MR" in run.results[bank].left
    value = prr.set_index(["metric", "method"])["value"]
    assert run.tables["T7"].at["ROUGE-L", "MSP"] == value["rouge_l", "msp"]
    filled = paper_sentences.filled_sentences(
        run, own_tables.bank_of_table(own_tables.STAND_IN_MODELS), "smoke"
    )
    assert len(filled) == 1 and filled[0].startswith("tiny-bart fills T7, T8 with ")


def test_the_comparison_takes_a_finished_run_for_one(tmp_path):
    banks = [bank for bank in page_tables.printed_banks() if not bank.startswith("aeslc--llama")]
    own_tables.write_synthetic_run(tmp_path, 1, {("T8", "CTC", "MTE"): 0.1}, banks)
    results, real = page_tables.paper_results(tmp_path, banks)
    cells, cover = own_tables.compare_with_print(results)
    tested = cells.dropna(subset="p")
    assert (
        real
        and "T3: the bank aeslc--llama-2-7b-chat was not run"
        in paper_sentences.compared_cells_sentence(tested, cover)
    )
    assert "T8 CTC, MTE (printed" in paper_sentences.inside_sentence(tested)
    assert page_tables.banks_with_scores(tmp_path, results) == []


def code_cells(path):
    return [cell for cell in nbformat.read(path, 4).cells if cell.cell_type == "code"]


@pytest.mark.parametrize("path", PAGES, ids=lambda path: path.stem)
def test_a_page_has_short_cells_an_out_folder_and_lines_to_change_it(path):
    cells = code_cells(path)
    assert max(len(cell.source.splitlines()) for cell in cells) <= 15
    (parameters,) = [cell.source for cell in cells if "parameters" in cell.metadata.get("tags", [])]
    lines = parameters.splitlines()
    assert lines[0].startswith('profile = "smoke"') and lines[-1].startswith('out = ""')
    assert all(line.count("=") == 1 for line in lines)
    markdown = [cell.source for cell in nbformat.read(path, 4).cells if cell.cell_type == "markdown"]
    assert markdown[-2] == "## Change this" and f"uetrust run {path.relative_to(ROOT)} " in markdown[-1]
    assert not any('say(f"' in cell.source for cell in cells)


def test_a_page_writes_to_the_folder_that_out_names(tmp_path, monkeypatch):
    "The printed tables need nothing else, so the page is fast"
    path = ROOT / "nbs/experiments/he2024/01_setting.ipynb"
    space = {}
    for cell in code_cells(path):
        source = cell.source.replace('out = ""', f"out = {json.dumps(str(tmp_path))}").replace("2000", "50")
        exec(source, space)
    assert (tmp_path / "tables" / "table09.csv").exists() and (tmp_path / "figures" / "fig39.csv").exists()
