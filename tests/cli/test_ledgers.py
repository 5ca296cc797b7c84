"""The ledgers of claims and of cells, and the index of exhibits, on the command line."""

import io
import json
import subprocess

import numpy as np
import pandas as pd
import pytest

from tests.helpers.cli import call
from tests.helpers.ledgers import RUN, needs_data
from tests.helpers.regret import real
from uetrust.cli.cli import main
from uetrust.core.settings import root
from uetrust.papers.deviations.register import PRESET_PROFILES, deviations
from uetrust.papers.people.translations import judged_translations
from uetrust.report.chapters import save_table


def test_claims_as_json_csv_and_filtered(capsys, tmp_path):
    rows = json.loads(call(capsys, "claims", "--json", "--draws", 20)[1])
    assert len(rows) == 154 and {row["verdict"] for row in rows} == {
        "holds",
        "partly",
        "fails",
        "not decidable",
    }
    by_id = {row["id"]: row for row in rows}
    assert by_id["4.2-01"]["shuffle_share"] == 1 and by_id["C1.6-01"]["joint_p"] < 0.05
    weak = by_id["4.2-12"]
    assert (weak["equivalence"], weak["margin"], by_id["4.2-01"]["equivalence"]) == ("not shown", 0.3, "")
    wide = json.loads(call(capsys, "claims", "--json", "--draws", 0, "--shuffles", 9, "--margin", 0.5)[1])
    row = {row["id"]: row for row in wide}["4.2-12"]
    assert (row["equivalence"], row["margin"]) == ("shown", 0.5)
    assert row["shuffle_share"] in np.arange(10) / 9
    failed = call(capsys, "claims", "--csv", "--verdict", "fails", "--section", "C.2.4", "--draws", 0)[
        1
    ].splitlines()
    assert len(failed) == 2 and failed[1].startswith("C2.4-05")
    for table in ("T9", "T11"):
        save_table(table, tmp_path)
    own = json.loads(call(capsys, "claims", "--json", "--tables", tmp_path, "--draws", 0)[1])
    open_ = [row for row in own if row["verdict"] == "not decidable"]
    assert 100 < len(open_) < 154 and any("T7" in row["note"] for row in open_)
    assert {row["id"]: row["verdict"] for row in own}["C2.2-03"] == "holds"


# The command
@needs_data
def test_the_command_lists_filters_and_is_json(tmp_path):
    done = subprocess.run(
        [*RUN, "cells", "--where", "paper=ice", "table=1", "status=recomputed", "--json"],
        cwd=root(),
        capture_output=True,
        text=True,
    )
    rows = json.loads(done.stdout)
    assert len(rows) == 24 and {row["status"] for row in rows} == {"recomputed, equal"}


def test_conditions_take_the_start_of_a_value_and_refuse_what_is_not_there():
    from uetrust.cli.ledgers import _select_rows

    table = pd.DataFrame(
        dict(table=[1, 12, 2], status=["recomputed, equal", "recomputed, different", "not at hand"])
    )
    assert list(_select_rows(table, ["table=1"])["table"]) == [1]
    assert list(_select_rows(table, ["status=recomputed"])["table"]) == [1, 12]
    with pytest.raises(ValueError, match="column=value"):
        _select_rows(table, ["tabel=1"])
    with pytest.raises(ValueError, match="no row fits"):
        _select_rows(table, ["table=7"])


def test_find_prints_page_notebook_files_and_command(capsys):
    assert main(["find", "figure", "23"]) == 0
    said = capsys.readouterr().out
    for text in ("report/table05.html", "01_setting.ipynb", "figures/fig23.csv", "setting=aeslc--gpt-3.5"):
        assert text in said


def test_find_answers_unknown_words_with_the_nearest_and_exit_code_1(capsys):
    with pytest.raises(SystemExit, match="nearest: ablations") as error:
        main(["find", "abblations"])
    assert error.value.code not in (0, 2) and not capsys.readouterr().out


@real
def test_the_command_prints_the_recorded_prr(oracle, capsys):
    "`uetrust people --json`: one row per method and metric, with value, lo, hi, n."
    without = ["--without", "chrf", "bleu", "ter", "rouge_l", "meteor"]
    assert main(["people", "--pair", "ru-en", "--split", "test20", "--json", *without]) == 0
    rows = {(row["method"], row["metric"]): row for row in json.loads(capsys.readouterr().out)}
    recorded = oracle("mlqe_test20.json")["pairs"]["ru-en"]["prr_mean"]
    row = rows["perplexity", "hter"]
    assert row["value"] == pytest.approx(recorded["minus_hter"]["perplexity"], abs=1e-9)
    assert row["lo"] < row["value"] < row["hi"] and row["n"] == 1000
    assert {metric for _, metric in rows} >= {"da", "da_z", "hter", "person_1", "person_3_z"}


def test_the_command_prints_the_golden_values_of_answers(oracle, capsys):
    assert main(["people", "--set", "evouna-nq", "--json"]) == 0
    rows = json.loads(capsys.readouterr().out)
    found = {(row["system"], row["metric"], row["method"]): row for row in rows}
    for system, known in oracle("evouna_nq.json").items():
        for metric, methods in known["prr"].items():
            for method, value in methods.items():
                row = found[system, metric, method]
                assert row["value"] == pytest.approx(value, abs=1e-9) and row["lo"] < row["value"] < row["hi"]
                assert row["n"] == known["n"] and row["measure"] == "PRR"


def test_the_command_knows_facts_and_summaries(capsys):
    assert main(["people", "--set", "factscore", "--system", "ChatGPT", "--json"]) == 0
    rows = json.loads(capsys.readouterr().out)
    assert {row["documents"] for row in rows} == {157} and {row["system"] for row in rows} == {"ChatGPT"}
    assert main(["people", "--set", "xsum"]) == 0
    said = capsys.readouterr().out
    assert "Spearman" in said and "95 % intervals" in said


def test_options_of_one_set_are_refused_for_another(capsys):
    for words, remedy in {
        "--set xsum --pair ru-en": "leave it out for xsum",
        "--set xsum --system a": "leave the system out",
        "--system gpt4 --pair ru-en": "name a --set",
        "": "need a --pair",
    }.items():
        assert main(["people", *words.split()]) == 2
        assert remedy in capsys.readouterr().err


def test_the_command_names_a_wrong_pair(capsys):
    assert main(["people", "--pair", "de-en"]) == 2
    assert "pairs ['en-de'" in capsys.readouterr().err


FAST = ["--without", "chrf", "bleu", "ter", "rouge_l", "meteor"]


@real
def test_the_command_joins_metrics_computed_elsewhere(tmp_path, monkeypatch, capsys):
    "HTER under another name, in another order and without its first ten rows, has the PRR of HTER there."
    monkeypatch.chdir(tmp_path)
    assert main(["people", "--pair", "ru-en", "--texts", "texts.parquet"]) == 0
    assert capsys.readouterr().out == "ok texts.parquet: 1000 translations\n"
    texts = pd.read_parquet("texts.parquet")
    assert list(texts) == ["sample", "source", "text", "post_edit"]
    hter = judged_translations("ru-en", "test20", without=tuple(FAST[1:])).quality["hter"]
    own = pd.DataFrame(dict(comet=hter[texts["sample"]].to_numpy(), sample=texts["sample"]))
    own["rest"] = own["comet"].where(own.index >= 10)
    other = pd.DataFrame(dict(sample=["ru-en dev 3"], comet=[0.5]))
    pd.concat([own.iloc[::-1], other]).to_csv("comet.csv", index=False)
    assert main(["people", "--pair", "ru-en", *FAST, "--scores", "comet.csv", "--json"]) == 0
    rows = {(row["method"], row["metric"]): row for row in json.loads(capsys.readouterr().out)}
    assert rows["msp", "comet"]["value"] == rows["msp", "hter"]["value"]
    assert (rows["msp", "comet"]["n"], rows["msp", "rest"]["n"]) == (1000, 990)
    assert main(["people", "--pair", "ru-en", *FAST, "--scores", "comet.csv"]) == 0
    said = capsys.readouterr().out
    best = max((row["value"], name) for (name, metric), row in rows.items() if metric == "hter")
    assert f"comet chooses {best[1]}, which has" in said and "10 translations have no score" in said


@real
def test_the_command_says_what_a_choice_by_a_given_metric_loses(tmp_path, monkeypatch, capsys):
    "People under another name lose what people lose, a metric with gaps cannot choose."
    monkeypatch.chdir(tmp_path)
    quality = judged_translations("ru-en", "test20", without=tuple(FAST[1:])).quality
    own = quality[["da_z"]].rename(columns=dict(da_z="comet"))
    own.assign(rest=own["comet"].iloc[10:]).rename_axis("sample").reset_index().to_csv(
        "comet.csv", index=False
    )
    command = ["people", "--pair", "ru-en", "--studies", "5", "--scores", "comet.csv"]
    assert main([*command, "--csv"]) == 0
    rows = pd.read_csv(io.StringIO(capsys.readouterr().out)).set_index(["metric", "n"])
    assert rows.loc["comet", "value"].equals(rows.loc["people", "value"])
    assert {"hter", "chrf", "embedding_spearman", "random", "metrics"} <= set(rows.index.get_level_values(0))
    assert (
        rows.loc[("hter", 100), "held_out"] and (rows.loc["random", "lo"] <= rows.loc["random", "hi"]).all()
    )
    assert main(command) == 0
    assert "rest cannot choose: it has gaps" in capsys.readouterr().out
    assert main([*command, "--without", "chrf"]) == 2 and "leave out --without" in capsys.readouterr().err


# The register of deviations
def test_deviations_are_counted_listed_and_given_to_programs(capsys, tmp_path):
    code, out, _ = call(capsys, "deviations")
    assert code == 0 and all(preset in out for preset in PRESET_PROFILES)
    code, out, _ = call(capsys, "deviations", "he2024")
    assert max(map(len, out.splitlines())) <= 80
    assert "measure.random: named deviation, tables 3 4" in out and "fields are the same" in out
    rows = json.loads(call(capsys, "deviations", "fflm", "--json")[1])
    assert len(rows) == len(deviations("fflm")) and {row["preset"] for row in rows} == {"fflm"}
    every = pd.read_csv(io.StringIO(call(capsys, "deviations", "--csv")[1]), keep_default_na=False, dtype=str)
    assert every.to_dict("list") == deviations().to_dict("list")
    assert call(capsys, "deviations", "ice", "--out", tmp_path / "ice.csv")[0] == 0
    assert len(pd.read_csv(tmp_path / "ice.csv")) == len(deviations("ice"))


def test_deviations_of_an_unknown_paper_list_what_works(capsys):
    code, out, err = call(capsys, "deviations", "he2023")
    assert (code, out) == (2, "") and "Did you mean 'he2024'?" in err and "narcissism, threshold" in err
    assert err.count("\n") == 1
