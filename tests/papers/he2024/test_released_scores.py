"""He et al.'s folder of scores: banks of ours in its layout come back, count nowhere, and damage is named."""

import json

import nbformat
import numpy as np
import pandas as pd
import pytest

from tests.helpers.paths import ROOT
from tests.helpers.release_layout import demo_scores, made_scores, write_bank, write_release
from uetrust.cli.cli import main
from uetrust.data.datasets import stored_texts
from uetrust.evaluation.prr import prr_table
from uetrust.papers.he2024 import released_scores as released
from uetrust.papers.he2024.page_tables import own_verdicts
from uetrust.papers.he2024.published import printed_tables
from uetrust.papers.he2024.released_texts import human_cells
from uetrust.papers.ledger import cells as ledger

SMALL = dict(AESLC=30, XSUM=36, TofuEval=12)


def first_summaries():
    return [given[0] for given in stored_texts("tofueval").values()]


@pytest.fixture
def folder(tmp_path, monkeypatch):
    "Folder that the setting names; what was read of another is forgotten"
    monkeypatch.setenv("UETRUST_HE2024_RELEASE", str(tmp_path / "release"))
    caches = (released._released, ledger._ledger)
    for cached in caches:
        cached.cache_clear()
    yield tmp_path / "release"
    for cached in caches:
        cached.cache_clear()


@pytest.fixture
def small(folder):
    "A whole folder with a few texts per data set"
    return write_release(folder, SMALL, tofu_gpt35_42=first_summaries()[: SMALL["TofuEval"]])


def test_a_demo_bank_in_the_layout_gives_the_same_prr_table(folder):
    quality, uncertainty = demo_scores()
    assert len(quality) > 100 and len(quality.columns) > 5 and len(uncertainty.columns) > 5
    write_bank(folder, "aeslc_bart_large_42", quality, uncertainty)
    release = released.read_release(folder, dict(SMALL, AESLC=len(quality)))
    found = released.release_results(release)["aeslc--bart-large-cnn"].prr
    expected = prr_table(quality, uncertainty, compat="he2024")
    key = ["method", "metric"]
    found, expected = (t.set_index(key)[["value", "se", "n"]].sort_index() for t in (found, expected))
    pd.testing.assert_frame_equal(found, expected)
    cells = human_cells(released.release_run(release))
    assert len(cells) == 9 * len(quality.columns) and cells["se"].gt(0).all()  # Table 7 has nine methods


def test_such_a_bank_counts_nowhere_in_the_ledger(folder, capsys):
    "Of the paper's size, with all files; the command says why."
    before = ledger.cell_ledger("He et al.")
    quality, uncertainty = made_scores("T9", 100)
    write_bank(folder, "tofu_gpt35_42", quality, uncertainty, summaries=first_summaries())
    ledger._ledger.cache_clear()
    released._released.cache_clear()
    pd.testing.assert_frame_equal(ledger.cell_ledger("He et al."), before)
    assert main(["cells", "--where", "paper=He et al."]) == 0
    out = capsys.readouterr().out
    assert "its files were written by this project" in out and "0 recomputed, equal" in out


def test_without_the_mark_other_texts_do_not_count_either(small):
    unmarked = write_release(small.parent / "unmarked", SMALL, mark=False)
    why = released.why_uncounted(released.read_release(unmarked, SMALL))
    assert "0% of the texts of" in why and "expected 95 % or more" in why
    marked = released.read_release(small, SMALL)
    assert (
        marked.problems == [] and released.why_uncounted(marked) == "its files were written by this project"
    )


def test_with_the_folder_every_cell_figure_and_claim_is_recomputed(small, monkeypatch):
    "The ledger says equal or different for each; a planted printed number is equal."
    release = released.read_release(small, SMALL)
    run = released.release_run(release)
    monkeypatch.setattr(released, "read_release", lambda folder: release)
    monkeypatch.setattr(released, "why_uncounted", lambda release: "")
    led = ledger.cell_ledger("He et al.")
    flat = sum(run.tables[name].isna().any().sum() for name in ("T10", "T11"))  # Errors in no summary
    whole = led[led["table"] <= 9]
    assert (whole["data"] != "").all() and (led["data"] != "").sum() > len(whole) + 50
    assert set(led.loc[led["data"] != "", "status"]) <= set(ledger.CELL_STATUS[:2]) and flat % 2 == 0
    row = whole[(whole["table"] == 3) & (whole["row"] == "ROUGE-L") & (whole["column"] == "MSP")].iloc[0]
    assert row["recomputed"] == run.tables["T3"].loc["ROUGE-L", "MSP"]
    mean = whole[(whole["table"] == 3) & (whole["row"] == "Col Mean") & (whole["column"] == "MSP")].iloc[0]
    assert mean["recomputed"] == pytest.approx(run.tables["T3"]["MSP"].mean())
    figures = released.release_figures(run)["figure"].nunique()
    assert figures == 39 - 2 * bool(flat)
    assert (own_verdicts(run)["own"] != "not asked").sum() > 100


def test_a_column_that_print_came_from_is_nearest_to_it(folder, monkeypatch):
    quality, uncertainty = made_scores("T7", 200)
    write_bank(folder, "aeslc_bart_large_42", quality, uncertainty)
    release = released.read_release(folder, dict(SMALL, AESLC=200))
    own = released.release_run(release).tables["T7"]
    turned = prr_table(quality, -uncertainty, compat="he2024").pivot(
        index="metric", columns="method", values="value"
    )
    printed = own.assign(MSP=turned["msp_he2024"].to_numpy()[[list(turned.index).index(m) for m in quality]])
    monkeypatch.setattr(released, "printed_tables", lambda: printed_tables() | dict(T7=printed))
    nearest = released.column_evidence(release).groupby("method").first()
    assert nearest["sign"].drop("MSP").eq(1).all() and nearest.loc["MSP", "sign"] == -1
    assert nearest["off"].max() < 1e-12 and nearest["cells"].eq(16).all()


def test_texts_that_occur_twice_are_merged_as_released(folder):
    "Mean uncertainty, best quality; in XSUM only in the third part."
    quality = pd.DataFrame(dict(rouge_l=[0.1, 0.9, 0.5, 0.3]))
    uncertainty = pd.DataFrame(dict(msp_he2024=[4.0, 2.0, 1.0, 5.0]))
    write_bank(folder, "aeslc_bart_large_42", quality, uncertainty, texts=["a", "a", "b", "c"])
    release = released.read_release(folder, dict(SMALL, AESLC=4))
    merged = dict(rouge_l=[0.9, 0.5, 0.3]), dict(msp_he2024=[3.0, 1.0, 5.0])
    merged = prr_table(*map(pd.DataFrame, merged), compat="he2024")
    found = released.release_results(release)["aeslc--bart-large-cnn"].prr
    assert found["value"].tolist() == merged["value"].tolist() and found["n"].tolist() == [3]
    bank = released.ReleasedBank(*made_scores("T8", 6000), pd.DataFrame(), ["same"] * 6000, [], False)
    assert len(released._merged(bank, "XSUM")[0]) == 6000 - (5667 - 3778) + 1


def damage(folder, pattern, change):
    "Change the text of the first file that matches"
    path = next(iter(sorted(folder.rglob(pattern))))
    path.write_text(change(path.read_text()))
    return path.name


CUT = dict(
    short=("est_42-*", lambda text: text.rpartition("\n{")[0] + "\n", "29 texts, expected 30"),
    json=("sample_42-*", lambda text: text.replace("}\n", "\n", 1), "line 1 is not JSON"),
    text=("est_42-*", lambda text: text.replace('MeanTokenEntropy": 0', 'MeanTokenEntropy": "?', 1), None),
    other=("*-unieval_res.json", lambda text: text.replace("text 4", "text 5", 1), "text 5 is not that of"),
    odd=("*-chatgpt_res_def_35.json", lambda text: "3\n" + text, "record 1 is not an object"),
    empty=("est_42-*", lambda text: "", "0 texts, expected 30"),
)


@pytest.mark.parametrize("kind", CUT)
def test_a_damaged_file_is_named_in_one_line_and_the_others_remain(kind, small):
    pattern, change, why = CUT[kind]
    name = damage(small / "", f"aeslc_llama2_7b_chat_42/{pattern}", change)
    release = released.read_release(small, SMALL)
    assert len(release.problems) == 1 and "\n" not in release.problems[0], release.problems
    assert release.problems[0].startswith("aeslc_llama2_7b_chat_42: ") and name in release.problems[0]
    assert (why or "is not") in release.problems[0]
    bank = release.banks["aeslc_llama2_7b_chat_42"]
    assert len(bank.quality.columns) + len(bank.uncertainty.columns) >= 31 and len(release.banks) == 7


def test_a_half_folder_is_named_file_by_file(small, capsys):
    for path in small.rglob("*"):
        if path.is_file() and path.parent.name == "xsum_bart_large_42":
            path.unlink()
    for path in small.rglob("tofu_gpt35_42/*chatgpt_res_def_both_35.json"):
        path.unlink()
    for path in small.rglob("xsum_gpt35_42/*g3*unieval*"):
        path.unlink()
    problems = released.read_release(small, SMALL).problems
    assert len(problems) == 3 and problems[0].startswith("xsum_gpt35_42: ") and "30 texts" in problems[0]
    assert "xsum_bart_large_42: missing" in problems[1]
    assert "tofu_gpt35_42: no file *-chatgpt_res_def_both_35.json with wi-ingt" in problems[2]
    assert main(["cells", "--paper", "He et al."]) in (0, 2)


def test_the_command_names_what_is_missing(small, capsys):
    "By the paper's sizes every file of the small folder is too short."
    assert main(["cells", "--where", "paper=He et al."]) == 0
    out = capsys.readouterr().out
    assert (
        "30 texts, expected 1,906" in out
        and "none of its files can be used" in out
        and "Traceback" not in out
    )


@pytest.mark.parametrize("there", ["a file", "nothing"])
def test_a_setting_that_names_no_folder_is_one_line(there, folder, capsys):
    if there == "a file":
        folder.write_text("zip")
    assert main(["cells", "--where", "paper=He et al."]) == 0
    out = capsys.readouterr().out
    assert ("a file: unpack it" if there == "a file" else "is not there") in out and "Traceback" not in out


def test_without_the_folder_nothing_changes(folder, monkeypatch):
    monkeypatch.delenv("UETRUST_HE2024_RELEASE")
    if released.release_folder() is None:
        assert released.release_problems() == [] and released.released_numbers("T3") == {}
        assert not (ledger.cell_ledger("He et al.")["data"] != "").any()
    assert np.isnan(ledger.cell_ledger("He et al.")["recomputed"]).any()


def test_metrics_in_two_files_of_one_run_are_both_read(folder):
    quality, uncertainty = made_scores("T7", 30)
    write_bank(folder, "aeslc_bart_large_42", quality, uncertainty)
    (path,) = folder.rglob("sample_42-*")
    records = [json.loads(line) for line in path.read_text().splitlines()]
    for flags, gone in (
        ("use_rouge=1_bart=0", "sequence#BARTScoreSeq-rh"),
        ("bart=1", "sequence#Rouge_rougeL"),
    ):
        kept = [{key: value for key, value in record.items() if key != gone} for record in records]
        other = path.with_name(path.name.replace("use_rouge=1", flags))
        other.write_text("".join(json.dumps(record) + "\n" for record in kept))
    path.unlink()
    release = released.read_release(folder, dict(SMALL, AESLC=30))
    bank = release.banks["aeslc_bart_large_42"]
    assert bank.quality[list(quality)].equals(quality)
    assert not [line for line in release.problems if line.startswith("aeslc_bart")]


def test_two_runs_with_other_scores_are_named_and_the_first_is_used(folder):
    quality, uncertainty = made_scores("T7", 30)
    write_bank(folder, "aeslc_bart_large_42", quality, uncertainty)
    for path in [*folder.rglob("*full_r4*")]:
        later = path.read_text().replace('MeanTokenEntropy": 0.', 'MeanTokenEntropy": 7.')
        path.with_name(path.name.replace("full_r4", "full_r5")).write_text(later)
    release = released.read_release(folder, dict(SMALL, AESLC=30))
    (line,) = [line for line in release.problems if line.startswith("aeslc_bart")]
    assert "the run full_r5 has other scores of MeanTokenEntropy: not used" in line
    assert release.banks["aeslc_bart_large_42"].uncertainty[list(uncertainty)].equals(uncertainty)


def test_a_text_without_a_score_is_left_out_before_texts_are_merged():
    quality = pd.DataFrame(dict(rouge_l=[0.1, 0.9, 0.5, 0.3, 0.2], ctc_he2024=[0.1, 0.4, 0.5, 0.3, 0.2]))
    uncertainty = pd.DataFrame(dict(mcse=[4.0, np.nan, 1.0, 5.0, 3.0], rde=[4.0, 2.0, 1.0, 5.0, 3.0]))
    bank = released.ReleasedBank(quality, uncertainty, uncertainty, list("aabcd"), [], False)
    found = released._prr_as_released(bank, "AESLC").set_index(["method", "metric"])
    by_hand = prr_table(
        pd.DataFrame(dict(rouge_l=[0.1, 0.5, 0.3, 0.2])),
        pd.DataFrame(dict(mcse=[4.0, 1.0, 5.0, 3.0])),
        compat="he2024",
    )
    assert found.at[("mcse", "rouge_l"), "value"] == by_hand["value"][0] and len(found) == 4


def merge(path, gone):
    "Put the records of a file into one list, without some texts of each pass, as the release merges"
    records = [json.loads(line) for line in path.read_text().splitlines()]
    n = len({record.get("input_texts", i) for i, record in enumerate(records)})
    path.write_text(json.dumps([record for i, record in enumerate(records) if i % n not in gone]))
    return path.name


@pytest.mark.parametrize(
    "pattern", ["est_42-*", "sample_42-*", "*-unieval_res.json", "*-chatgpt_res_def_35.json"]
)
def test_a_merged_file_without_some_texts_is_read_and_they_have_no_score(pattern, small):
    bank, gone = "aeslc_llama2_7b_chat_42", [0, 4, 29]
    whole = released.read_release(small, SMALL).banks[bank]
    (path,) = [path for path in small.rglob(pattern) if path.parent.name == bank]
    name = merge(path, gone)
    found = released.read_release(small, SMALL)
    assert found.problems == [f"{bank}: {name} was merged without 3 texts: they have no score"]
    empty = 0
    for table in ("quality", "uncertainty"):
        before, after = (getattr(one, table) for one in (whole, found.banks[bank]))
        touched = after.columns[after.isna().any()]
        assert after.drop(index=gone).equals(before.drop(index=gone))
        assert after[touched].loc[gone].isna().all(axis=None) or not len(touched)
        empty += len(touched)
    assert empty == {"est": 6, "sam": 6}.get(pattern[:3], 5) and found.banks[bank].texts == whole.texts
    assert len(released.release_results(found)["aeslc--llama-2-7b-chat"].prr) == 31 * 6


def test_a_merged_file_whose_rows_are_not_certain_is_not_used_and_says_why(folder):
    texts = [f"text {i}" for i in range(28)] + ["twice", "twice"]
    write_bank(folder, "aeslc_bart_large_42", *made_scores("T7", 30), texts=texts)
    (path,), (sample,) = folder.rglob("est_42-*"), folder.rglob("sample_42-*")
    records = [json.loads(line) for line in path.read_text().splitlines()]

    def problem(text):
        path.write_text(text)
        found = released.read_release(folder, dict(SMALL, AESLC=30)).problems
        (line,) = [line for line in found if "est_42" in line]
        return line.partition(f"{path.name}: ")[2]

    found = "29 and 29 texts, expected 30"
    without_last = records[:29] + records[30:59]
    why = "text 29 is equal to one beside it, so its row is not certain"
    assert problem(json.dumps(without_last)) == f"{found}, and {why}"
    turned = records[1::-1] + records[3:30] + records[31:]
    assert problem(json.dumps(turned)) == f"{found}, and text 2 is not where it is in the other files"
    without_first = records[1:30] + records[31:]
    assert problem("\n".join(map(json.dumps, without_first))) == found  # Not merged: a run that was cut
    merge(sample, [2])
    why = "no sample or est file of its run has all: which are left out is not known"
    assert problem(json.dumps(without_first)) == f"{found}, and {why}"


def test_files_that_no_table_needs_are_not_read(small):
    whole = released.read_release(small, SMALL)
    (path,) = small.rglob("aeslc_gpt35_42/*unieval_res.json")
    for kind in ("unieval_gt", "unieval_gt_seid", "chatgpt_gt_def_35", "chatgpt_res_def_40"):
        path.with_name(path.name.replace("unieval_res", kind)).write_text("no JSON")
    (path,) = small.rglob("aeslc_gpt35_42/sample_42-*")
    path.with_name(path.name.replace("sample_", "general_")).write_text("no JSON")
    again = released.read_release(small, SMALL)
    assert again.problems == whole.problems == []
    assert all(bank.quality.equals(again.banks[name].quality) for name, bank in whole.banks.items())


@pytest.mark.parametrize("at_hand", ["whole", "none", "not counted"])
def test_the_page_beside_print_says_what_the_released_scores_give(at_hand, small, monkeypatch):
    "Counts of equal, different and missing numbers, of figures and of claims; else how to get the folder."
    page, said = small.parent / "runs", []
    release = released.read_release(small, SMALL)
    if at_hand == "whole":
        monkeypatch.setattr(released, "read_release", lambda folder: release)
        monkeypatch.setattr(released, "why_uncounted", lambda release: "")
    elif at_hand == "none":
        monkeypatch.setattr(released, "release_folder", lambda: None)
    space = dict(display=said.append)
    for cell in nbformat.read(ROOT / "nbs/experiments/he2024/04_against_print.ipynb", 4).cells:
        if cell.cell_type == "code":
            exec(cell.source.replace('out = ""', f"out = {str(page)!r}"), space)
    text = " ".join(json.loads((page / "pages" / "against_print.json").read_text())["text"])
    if at_hand != "whole":
        why = "there is no such folder here" if at_hand == "none" else "none of its files can be used"
        assert f"not part of this run: {why}. To get them, fetch {released.RELEASE_ADDRESS} with" in text
        assert "UETRUST_HE2024_RELEASE" in text and not list(page.rglob("*print_released*"))
        return
    led = ledger.cell_ledger("He et al.")
    counts = pd.read_csv(page / "tables" / "against_print_released.csv")
    for status in ledger.CELL_STATUS:
        assert counts[status].sum() == (led["status"] == status).sum()
    differ = pd.read_csv(page / "tables" / "against_print_released_differ.csv")
    assert len(differ) == counts["recomputed, different"].sum() > 900
    assert f"{len(differ):,} differ" in text and "claims that both decide" in text
    run = released.rerun_of_release().run
    assert f"of {released.release_figures(run)['figure'].nunique()} figures that can be drawn" in text
