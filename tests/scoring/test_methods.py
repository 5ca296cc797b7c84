"""From stored statistics to scores: what a run computes, what it says is missing, and that shards change
nothing."""

import dataclasses
import json
import os

import numpy as np
import pandas as pd
import pytest

from tests.helpers.registered import SCORES, reg
from tests.helpers.writers import SAMPLES, S, tiny
from uetrust.cli.cli import main
from uetrust.core.registry import Registry
from uetrust.core.run import required_inputs, required_scores
from uetrust.generation.bank import bank_provenance, bank_row, fill_bank
from uetrust.generation.local import fill_local_bank
from uetrust.report.cards import list_scores
from uetrust.scoring.methods import BankTexts, bank_methods, score_generations, score_shards
from uetrust.statistics.generator import PASSES
from uetrust.statistics.passes import compute_likelihoods
from uetrust.statistics.stored import score_runs
from uetrust.statistics.table import read_statistics, write_statistics


@pytest.fixture(scope="module")
def banks(tmp_path_factory):
    "One bank in one shard and in shards of 3, with the same readings by the generator"
    m, (one, many) = tiny("bart"), (tmp_path_factory.mktemp(n) for n in ("one", "many"))
    for at, size in ((one, 64), (many, 3)):
        fill_local_bank(at / "texts", "toy", "bart", SAMPLES[:8], m, S, size=size, progress=False)
    for p in ("conditional", "vocabulary", "processed"):
        compute_likelihoods(one / p, one / "texts", SAMPLES[:8], m, PASSES[p], S, progress=False)
        rows = read_statistics(one / p).set_index(["sample", "kind", "k"])

        def again(texts, rows=rows):
            return [
                dict(sample=registry.sample, kind=registry.kind, k=registry.k)
                | rows.loc[(registry.sample, registry.kind, registry.k)].to_dict()
                for registry in texts.itertuples()
            ]

        write_statistics(many / p, many / "texts", dict(title=p), again, PASSES[p].kinds, progress=False)
    return {64: one, 3: many}


def test_shards_change_no_score(banks):
    one, other = (score_generations(banks[n], samples=SAMPLES, progress=False) for n in (3, 64))
    a, b = one.table, other.table
    key = ["name", "sample"]
    assert len(list(score_runs(banks[3]))) == 3 and len(list(score_runs(banks[64]))) == 1
    pd.testing.assert_frame_equal(
        a.sort_values(key, ignore_index=True), b.sort_values(key, ignore_index=True), check_exact=True
    )
    assert {"msp", "mcse", "renyi", "mte_he2024", "lex_sim", "chance"} <= set(a["name"])
    assert one.missing == other.missing


def test_a_bank_names_itself_in_a_copy_of_its_scores(banks):
    scores = score_generations(banks[64], samples=SAMPLES, progress=False)
    plain = scores.table.drop(columns=["dataset", "generator"])
    bare = dataclasses.replace(scores, table=plain.copy())
    described = BankTexts(banks[64], SAMPLES).described(bare)
    pd.testing.assert_frame_equal(described.table, scores.table)
    pd.testing.assert_frame_equal(bare.table, plain)


def test_every_score_is_given_or_says_what_is_not_stored(banks):
    scores = score_generations(banks[64], samples=SAMPLES, progress=False)
    table = scores.table
    known = set(bank_methods(reg))
    assert set(table["name"]) | set(scores.missing) == known and not set(table["name"]) & set(scores.missing)
    of_systems = {"other_systems_f1", "other_systems_jaccard", "other_systems_cosine", "answer_length"}
    of_claims = {name for name in SCORES if any("claim" in need for need in required_inputs(name, reg))}
    of_judges = {name for name in SCORES if "judge_scores" in required_inputs(name, reg)}
    assert set(SCORES) - known == of_systems | of_claims | of_judges
    assert len(of_claims) == 21 and len(of_judges) == 4
    assert "a row for each claim" in BankTexts(banks[64]).remedy("claim_nli")
    named = score_generations(banks[64], [*of_systems, "msp"], samples=SAMPLES, progress=False)
    assert set(named.missing) == of_systems and named.missing["answer_length"] == ["answer"]
    assert "a column system" in BankTexts(banks[64]).remedy("other_texts")
    assert scores.missing["eigv"] == ["nli"] and scores.missing["huq"] == ["md"]
    assert (table["note"] != "").equals(table["value"].isna())


def test_scores_that_rest_on_scores_see_the_whole_bank(banks):
    registry = Registry()
    registry |= {n: reg[n] for n in ("msp", "output_length")}

    @registry.add(kind="stat", unit="rank", cite="test")
    def place(msp: list) -> list:
        return pd.Series(msp).rank().tolist()

    @registry.add(kind="ue", unit="rank", cite="test")
    def placed(place: float) -> float:
        return place

    assert required_scores("placed", registry) == {"msp"}
    for bank in banks.values():
        table = score_generations(bank, ["placed", "output_length"], reg=registry, progress=False).table
        assert sorted(table.loc[table["name"] == "placed", "value"]) == list(range(1, 9)) and list(
            table["name"].unique()
        ) == ["placed", "output_length"]


class Counted:
    "A progress bar that remembers what it was told"

    def __init__(self):
        self.told = []

    def update(self, n):
        self.told.append(n)


def test_a_progress_bar_is_told_of_the_texts_of_every_shard(banks):
    bar = Counted()
    shown = score_shards(score_runs(banks[3]), ["msp"], bar=bar).table
    pd.testing.assert_frame_equal(shown, score_shards(score_runs(banks[3]), ["msp"]).table)
    assert bar.told == [3, 3, 2] and list(shown) == ["sample", "name", "value", "note"]


def test_what_nothing_stores_gives_an_empty_table_that_says_so(banks):
    scores = score_generations(banks[64], ["eigv"], progress=False)
    table = scores.table
    assert list(table) == ["dataset", "generator", "sample", "name", "value", "note"] and len(table) == 0
    assert (scores.missing, scores.notes, scores.truncated) == (dict(eigv=["nli"]), [], {})


@pytest.mark.parametrize("cut", [[0, 3, 1], [0, 0, 0], None])
def test_a_source_that_was_cut_is_told_of_the_scores_that_rest_on_it(tmp_path, cut):
    samples = SAMPLES[:3]

    def texts(part):
        return [bank_row(name, "greedy", 0, "w1", [6], 0, "stop") for name in part["id"]]

    def relevance(rows):
        found = rows[["sample", "kind", "k"]].assign(relevance=[[0.5]] * len(rows))
        return (found if cut is None else found.assign(source_cut=cut)).to_dict("records")

    def logp(rows):
        return [
            row | dict(ids=[6], logp=[-0.5], special=[False])
            for row in rows[["sample", "kind", "k"]].to_dict("records")
        ]

    about = bank_provenance("toy", "m", "", "", {}, dict(greedy=1))
    fill_bank(tmp_path / "texts", samples, about, texts, progress=False)
    write_statistics(
        tmp_path / "relevance", tmp_path / "texts", dict(title="r"), relevance, ("greedy",), progress=False
    )
    write_statistics(
        tmp_path / "conditional", tmp_path / "texts", dict(title="c"), logp, ("greedy",), progress=False
    )
    scores = score_generations(tmp_path, ["token_sar", "msp"], progress=False)
    table = scores.table
    assert set(table["name"]) == {"token_sar", "msp"}
    note = "token_sar: for 2 of 3 texts the source lost its end to fit into the encoder"
    assert scores.notes == ([note] if cut and any(cut) else [])


def test_the_command_lists_methods_and_scores_a_bank(banks, tmp_path, capsys):
    assert main(["methods", "--json"]) == 0
    assert [m["name"] for m in json.loads(capsys.readouterr().out)] == list(list_scores()["name"]) == SCORES
    assert main(["methods", "msp"]) == 0 and capsys.readouterr().out.startswith("# msp\n")
    assert main(["methods", "mps"]) == 2 and "Did you mean 'msp'" in capsys.readouterr().err
    bank = os.fspath(banks[64])
    assert main(["score", bank, "--method", "msp", "mte", "eigv", "--out", str(tmp_path / "s.parquet")]) == 0
    out = capsys.readouterr().out
    assert "2 methods on 8 texts" in out and "eigv: lacks nli" in out
    table = pd.read_parquet(tmp_path / "s.parquet")
    assert (
        list(table) == ["dataset", "generator", "sample", "name", "value", "note"]
        and len(table) == 16
        and np.isfinite(table["value"]).all()
    )
    assert (
        main(["score", bank, "--out", "scores.txt"]) == 2
        and "are written to .parquet or .csv" in capsys.readouterr().err
    )
