"""Own numbers beside the printed ones: from the files that a run leaves, and by the command."""

import io
import json

import pandas as pd
import pytest

from tests.helpers.cli import call
from uetrust.core import settings as s
from uetrust.papers.deviations import beside_print as b
from uetrust.papers.deviations.register import deviations
from uetrust.papers.he2024.own_tables import write_synthetic_run


@pytest.fixture
def runs(tmp_path, monkeypatch):
    "Folder in which runs lie"
    for module in (s, b):
        monkeypatch.setattr(module, "out_dir", lambda name: tmp_path / name)
    return tmp_path


def write(folder, name, **columns):
    (folder / "tables").mkdir(parents=True, exist_ok=True)
    pd.DataFrame(columns).to_csv(folder / "tables" / name, index=False)


def write_paper(runs):
    moved = {("T7", "ROUGE-L", "MD"): 0.5}
    write_synthetic_run(runs / "paper-50", 1, moved, ["aeslc--bart-large-cnn"], 0.1)


def write_ice(runs):
    both = dict(part="ways", level="pooled", fold=0, k=4, dim="coherence", value=0.45)
    rows = [
        both | dict(how=how, coef=coef, lo=0.4 if coef == "spearman" else None, hi=0.5)
        for how in ("uniform", "stratified", "as_coded")
        for coef in ("spearman", "kendall")
    ]
    write(runs / "ice-50", "ice_study_correlations.csv", **pd.DataFrame(rows).to_dict("list"))
    other = dict(
        row=["CTC", "BARTScore"], group="Consistency", column="rho", value=0.4, lo=0.3, hi=[0.5, 0.35]
    )
    write(runs / "ice-50", "ice_study_baselines.csv", **other)


def write_fflm(runs):
    write(runs / "fflm-50", "fflm_study_table1.csv", row=["a"], column=["Val"], value=[50], printed=[1281])
    two = dict(row=["FFLM", "BARTScore", "Own"], group="FRANK", column="balanced_accuracy")
    two |= dict(value=[80.0, 70.0, 60.0], lo=[75.0, 60.0, 50.0], hi=[90.0, 75.0, 70.0])
    write(runs / "fflm-50", "fflm_study_table2.csv", **two, printed=[84.4, 78.0, None])


def write_narcissism(runs):
    columns = dict(benchmark=["rose", "summeval"], evaluator="GPT2", coefficient="spearman")
    write(runs / "narcissism-50", "self_bias_people.csv", **columns, value=0.9, lo=0.8, hi=0.95)


def write_threshold(runs):
    for classifier in ("logistic", "stump"):
        columns = dict(dataset=["frank"], row=["frank"], metric=["ANLI"], auc=[89.0], lo=[80.0], hi=[95.0])
        write(runs / "threshold-50", f"threshold_beside_{classifier}.csv", **columns, printed=[89.4])


WRITERS = {  # Profile -> what writes its files, printed numbers that it touches, field that touches the first
    "paper-50": (write_paper, 144, "number.texts"),
    "ice-50": (write_ice, 4 + 2, "profile.ice_judge"),
    "fflm-50": (write_fflm, 2, "model.LLaMa-7B"),
    "narcissism-50": (write_narcissism, 2, "precision"),
    "threshold-50": (write_threshold, 1, "metric.anli"),
}


@pytest.mark.parametrize("profile", WRITERS)
def test_every_number_that_a_run_touches_is_expected_got_and_explained(profile, runs, capsys):
    writer, count, field = WRITERS[profile]
    writer(runs)
    beside = b.beside_print(profile)
    assert len(beside) == count and field in beside["deviations"].iloc[0].split()
    assert set("table row group column printed own lo hi inside deviations".split()) == set(beside)
    known = beside[beside["inside"] != ""]
    within = (known["lo"] <= known["printed"]) & (known["printed"] <= known["hi"])
    assert list(within) == list(known["inside"] == "yes") and known[["lo", "hi"]].notna().all(axis=None)
    code, out, _ = call(capsys, "expected", profile)
    first = next(line for line in out.splitlines() if field in line)
    row = deviations(b.preset_of_profile(profile)).set_index("field").loc[field]
    assert code == 0 and (row["ours"] or row["setting"])[:30] in first
    assert f"of {len(known)} printed numbers" in out and "expected" in out and "got" in out


def test_a_number_outside_its_interval_is_not_inside(runs):
    write_paper(runs)
    off = b.beside_print("paper-50").set_index(["row", "column"])
    assert off.at[("ROUGE-L", "MD"), "inside"] == "no" and (off["inside"] == "yes").mean() > 0.9
    assert "precision.summac" in off.at[("SummaC", "MD"), "deviations"].split()
    assert "precision.summac" not in off.at[("ROUGE-L", "MD"), "deviations"].split()
    assert "register names a deviation for" in b.beside_sentence(off)


def test_the_released_choice_of_examples_stands_beside_the_printed_one(runs):
    write_ice(runs)
    beside = b.beside_print("ice-50").set_index(["row", "column"])
    assert set(beside.index.get_level_values("row")) == {*b._ICE_ROWS.values(), "CTC", "BARTScore"}
    assert beside.at[("ICE (Uniform Sampling)", "tau"), "inside"] == ""


def test_the_table_is_stored_and_given_to_programs(runs, capsys, tmp_path):
    write_threshold(runs)
    out = tmp_path / "threshold.csv"
    assert call(capsys, "expected", "threshold-50", "--out", out)[0] == 0
    stored = pd.read_csv(out)
    shown = pd.read_csv(io.StringIO(call(capsys, "expected", "threshold-50", "--csv")[1]))
    pd.testing.assert_frame_equal(stored, shown, check_dtype=False)
    assert "metric.anli" in stored["deviations"][0]
    assert json.loads(call(capsys, "expected", "threshold-50", "--json")[1])[0]["printed"] == 89.4


def test_a_run_whose_numbers_are_all_missing_has_none_to_show(runs, capsys):
    undefined = dict(part="ways", level="pooled", fold=0, dim="coherence", how="uniform", coef="spearman")
    write(runs / "ice-50", "ice_study_correlations.csv", **undefined, value=[None], lo=None, hi=None)
    code, _, err = call(capsys, "expected", "ice-50")
    assert code == 2 and "has no number to put beside print" in err


def test_a_profile_without_a_paper_and_a_run_without_pages_say_what_would_work(runs, capsys):
    code, _, err = call(capsys, "expected", "demo")
    assert code == 2 and "repeats no paper; these do: paper, ice" in err
    code, _, err = call(capsys, "expected", "paper-50")
    assert code == 2 and "run `make reproduce PROFILE=paper-50` first" in err and err.count("\n") == 1


def test_other_metrics_of_ice_stand_beside_their_printed_rows(runs):
    write_ice(runs)
    found = b.beside_print("ice-50").set_index("row").loc[["CTC", "BARTScore"]]
    assert found["printed"].tolist() == [0.425, 0.380] and found["inside"].tolist() == ["yes", "no"]
    assert "metric.ctc" in found.at["CTC", "deviations"].split()
    assert "metric.bart" in found.at["BARTScore", "deviations"].split()
