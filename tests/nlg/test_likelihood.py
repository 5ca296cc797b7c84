"""BARTScore, T5Score and GPTScore: recorded numbers of the peers' code, the leaves they are made of, and
the twenty evaluators."""

# ruff: noqa: F811

import csv

import numpy as np
import pytest

from tests.helpers.likelihood import (
    bulletins,  # noqa: F401
    close,
    pairs,  # noqa: F401
    reader,  # noqa: F401
)
from uetrust.core.checks import Undefined
from uetrust.core.registry import reg
from uetrust.core.run import ScoreRun, compute_score
from uetrust.core.settings import published_file, root
from uetrust.models.forward import Layout
from uetrust.models.likelihoods import PEER_LAYOUT, directed_logp
from uetrust.models.load import load_model
from uetrust.nlg.likelihood import (
    NARCISSISM_MODELS,
    _narcissism_model,
    bart_score,
    bart_score_exp,
    bart_score_f,
    bart_score_he2024,
    bart_score_precision,
    bart_score_recall,
    gpt_score,
    gpt_score_echo_precision,
    gpt_score_flan,
    gpt_score_flan_precision,
    gpt_score_precision,
    gpt_score_recall,
    t5_score,
    t5_score_precision,
    t5_score_recall,
    t5_score_source,
)


def texts_of(rows, names=("hypothesis", "source", "reference")):
    return {k: [row[n] for row in rows] for k, n in zip(("hypothesis", "source", "reference"), names)}


@pytest.fixture(scope="module")
def triples(oracle):
    return {triple["id"]: triple for triple in oracle("metrics/triples.json")["triples"]}


# BARTScore
@pytest.fixture(scope="module")
def bart(oracle, reader, triples):
    "Recorded scores, ids, and the leaves of all directions"
    rec = oracle("metrics/bartscore.json")
    ids = list(rec["scores"]["src_to_hyp"])
    given, model = texts_of([triples[name] for name in ids]), reader("metrics/models/tiny_bart")
    leaves, cut = directed_logp(
        model, "bart", ["source_hypothesis", "reference_hypothesis", "hypothesis_reference"], **given
    )
    short, cut_off = directed_logp(
        model, "bart256", ["source_hypothesis", "hypothesis_reference"], **given, layout=Layout(window=256)
    )
    return rec, ids, leaves | short, cut | cut_off


SCORES_BY_DIRECTION = dict(
    src_to_hyp=lambda statistics: bart_score(statistics["bart_logp_source_hypothesis"]),
    src_to_hyp_batch1=lambda statistics: bart_score(statistics["bart_logp_source_hypothesis"]),
    ref_to_hyp=lambda statistics: bart_score_precision(statistics["bart_logp_reference_hypothesis"]),
    hyp_to_ref=lambda statistics: bart_score_recall(statistics["bart_logp_hypothesis_reference"]),
    f_ref=lambda statistics: bart_score_f(
        statistics["bart_logp_reference_hypothesis"], statistics["bart_logp_hypothesis_reference"]
    ),
    he_rh_maxlen256=lambda statistics: bart_score_he2024(statistics["bart256_logp_hypothesis_reference"]),
    src_to_hyp_maxlen256=lambda statistics: bart_score(statistics["bart256_logp_source_hypothesis"]),
)


@pytest.mark.parametrize("name", SCORES_BY_DIRECTION)
def test_bartscore_in_every_direction(bart, name):
    rec, ids, leaves, _ = bart
    close(
        (SCORES_BY_DIRECTION[name]({k: values[n] for k, values in leaves.items()}) for n in range(len(ids))),
        (rec["scores"][name][i] for i in ids),
    )


@pytest.mark.parametrize("several", ["mean", "max"])
def test_bartscore_of_several_references(oracle, reader, triples, several):
    rec = oracle("metrics/bartscore.json")
    ids = list(rec["multi_refs"])
    leaves, _ = directed_logp(
        reader("metrics/models/tiny_bart"),
        "bart",
        ["hypothesis_reference"],
        [triples[i]["hypothesis"] for i in ids],
        reference=[rec["multi_refs"][i] for i in ids],
    )
    got = [bart_score_recall(logps, several) for logps in leaves["bart_logp_hypothesis_reference"]]
    close(got, (rec["scores"][f"multi_ref_{several}"][i] for i in ids))


def test_what_bartscore_does_not_read_is_counted(bart):
    _, ids, leaves, cut = bart
    cut_off = {k: dict(zip(ids, v.tolist())) for k, v in cut.items()}
    n = len(leaves["bart_logp_source_hypothesis"][ids.index("copy_long")])  # the text is its own source
    assert (
        256 < n < 1024
        and {k for v in (cut_off[x] for x in cut_off if "256" not in x) for k, c in v.items() if c} == set()
    )
    assert {k: c for k, c in cut_off["bart256_logp_source_hypothesis"].items() if c} == {
        "expedition_long": n - 256,
        "copy_long": 2 * (n - 256),
    }
    assert len(leaves["bart256_logp_source_hypothesis"][ids.index("copy_long")]) == 256


def test_an_empty_summary_has_the_mean_over_its_two_special_tokens(bart):
    rec, ids, leaves, _ = bart
    got = leaves["bart_logp_source_hypothesis"][ids.index("empty_hyp")]
    close(got, rec["detail"]["empty_hyp"]["target_logprobs"])
    assert len(got) == 2


def test_the_exponential_ranks_alike(bart):
    _, _, leaves, _ = bart
    plain, exp = (
        [score(logps) for logps in leaves["bart_logp_source_hypothesis"]]
        for score in (bart_score, bart_score_exp)
    )
    assert np.argsort(plain).tolist() == np.argsort(exp).tolist() and all(0 < value < 1 for value in exp)
    close(np.log(exp), plain, 1e-12)


# T5Score, GPTScore and the second BARTScore file
SIDES = dict(
    src_to_hyp=("source_hypothesis", 0),
    hyp_to_src=("hypothesis_source", 0),
    ref_to_hyp=("reference_hypothesis", 1),
    hyp_to_ref=("hypothesis_reference", 1),
)


@pytest.mark.parametrize("name,model", [("bartscore", "tiny_bart"), ("t5score", "tiny_t5")])
def test_seq2seq_scores_in_every_direction(oracle, reader, pairs, name, model):
    want = oracle("seed_systems/s2s_likelihoods.json")[name]["values"]
    ids = list(want["src_to_hyp"])
    given = texts_of([pairs[i] for i in ids], ("summary", "source", "reference"))
    statistics, _ = directed_logp(
        reader(f"seed_systems/models/{model}"), "t5", [way for way, _ in SIDES.values()], **given
    )
    of = dict(
        src_to_hyp=map(t5_score_source, statistics["t5_logp_source_hypothesis"]),
        hyp_to_src=map(t5_score_source, statistics["t5_logp_hypothesis_source"]),
        ref_to_hyp=map(t5_score_precision, statistics["t5_logp_reference_hypothesis"]),
        hyp_to_ref=map(t5_score_recall, statistics["t5_logp_hypothesis_reference"]),
        f_ref=map(
            t5_score, statistics["t5_logp_reference_hypothesis"], statistics["t5_logp_hypothesis_reference"]
        ),
    )
    for k, got in of.items():
        close(got, (want[k][i] for i in ids))


def test_gptscore_of_flan(oracle, reader, pairs):
    want, model = (
        oracle("seed_systems/s2s_likelihoods.json")["gptscore_flan"]["values"],
        reader("seed_systems/models/tiny_t5"),
    )
    given = texts_of([pairs[i] for i in want["plain"]], ("summary", "source", "reference"))
    plain, _ = directed_logp(model, "flan", ["source_hypothesis"], **given)
    prefixed, _ = directed_logp(model, "flan", ["source_hypothesis"], **given, before="Summarize: ")
    template, _ = directed_logp(
        model, "flan", ["reference_hypothesis"], **given, layout=Layout(sep=" In other words , ", window=1024)
    )
    close(map(gpt_score_flan, plain["flan_logp_source_hypothesis"]), want["plain"].values())
    close(map(gpt_score_flan, prefixed["flan_logp_source_hypothesis"]), want["prefix_summarize"].values())
    close(
        map(gpt_score_flan_precision, template["flan_logp_reference_hypothesis"]),
        want["template_ref_to_hyp"].values(),
    )


GPT = dict(
    in_other_words_ref_to_hyp=("reference_hypothesis", " In other words , ", gpt_score_precision),
    in_other_words_hyp_to_ref=("hypothesis_reference", " In other words , ", gpt_score_recall),
    tldr_src_to_hyp=("source_hypothesis", " TL;DR: ", gpt_score),
)


@pytest.mark.parametrize("name", GPT)
def test_gptscore_of_a_causal_model(oracle, reader, pairs, name):
    rec, (way, sep, metric) = oracle("seed_systems/s2s_likelihoods.json")["gptscore_gpt2"], GPT[name]
    want = rec["values"][name]
    given = texts_of([pairs[i] for i in want], ("summary", "source", "reference"))
    statistics, _ = directed_logp(
        reader("seed_systems/models/tiny_gpt2"),
        "gpt",
        [way],
        **given,
        layout=Layout(prefix_token=None, joined=True, sep=sep, window=1000),
    )
    for got, expected in zip(statistics[f"gpt_logp_{way}"], want.values()):
        if expected is None:  # Upstream: not a number, for a target of one token
            with pytest.raises(Undefined, match="has 1 tokens, and the first does not count"):
                metric(got)
        else:
            close([metric(got)], [expected])
    if name == "tldr_src_to_hyp":
        assert [len(logps) for logps in statistics["gpt_logp_source_hypothesis"]] == [
            item["n_target_tokens"] for item in rec["scored_tokens"]
        ]
    assert sum(expected is None for expected in want.values()) == (name != "in_other_words_hyp_to_ref")


@pytest.mark.parametrize(
    "model,name,layout",
    [
        ("tiny-bart", "bart_score", {}),
        ("tiny-t5", "t5_score_source", {}),
        ("tiny-llama", "gpt_score", dict(sep=" ")),
    ],
)
def test_a_reference_beats_word_salad_for_the_shipped_models(model, name, layout, bulletins):
    m, leaf = load_model(root() / "data/models" / model, device="cpu"), reg[name].needs[0]
    ask = lambda texts: directed_logp(
        m,
        leaf.split("_")[0],
        ["source_hypothesis"],
        texts,
        bulletins["source"],
        layout=Layout(**layout),
        before="[INST] Summarize the bulletin: " * bool(layout),
    )[0]
    good, bad = (
        compute_score(ScoreRun(range(6), reg, **ask(bulletins[k])), name)["value"].to_numpy()
        for k in ("hypothesis", "salad")
    )
    assert (good > bad + 1).all()


def test_missing_references_are_a_fact_about_the_item():
    for metric in (
        bart_score_precision,
        bart_score_recall,
        bart_score_he2024,
        t5_score_precision,
        gpt_score_precision,
        gpt_score_echo_precision,
    ):
        with pytest.raises(Undefined, match="no reference"):
            metric([])
    with pytest.raises(Undefined, match="at least 1 token, got 0"):
        bart_score(np.zeros(0))


# The twenty evaluators
def test_evaluators_are_those_that_the_paper_prints():
    for n in (4, 5):
        with open(published_file(f"narcissism_table{n}.csv")) as file:
            rows = list(csv.DictReader(file))
        printed = {(row["row"], row["column"]): row for row in rows}
        assert list(dict.fromkeys(row["row"] for row in rows)) == list(NARCISSISM_MODELS)
        for name, model in NARCISSISM_MODELS.items():
            assert model.checkpoint.replace("_", " ") == printed[name, "checkpoint"]["value_text"].replace(
                "_", " "
            )
            prompt = printed[name, "prompt"]
            assert (model.prefix + model.suffix).strip() == prompt["value_text"]
            assert not prompt["note"].startswith("prefix (before") or model.prefix and not model.suffix
            assert not prompt["note"].startswith("suffix (after") or model.suffix and not model.prefix


def test_families_and_tuning_are_as_many_as_the_study_has():
    count = {
        family: sum(model.family == family for model in NARCISSISM_MODELS.values())
        for family in ("BART", "T5", "GPT", "FLAN-T5", "Cohere")
    }
    assert count == {"BART": 6, "T5": 7, "GPT": 4, "FLAN-T5": 2, "Cohere": 1}
    assert all(
        bool(model.tuned) == n.endswith(("CNN", "XSUM")) and n.endswith(model.tuned)
        for n, model in NARCISSISM_MODELS.items()
    )
    assert [n for n, model in NARCISSISM_MODELS.items() if model.runs != "hub"] == [
        "GPT3-Curie",
        "Cohere-Command",
    ]
    with pytest.raises(LookupError, match="Did you mean .*'GPT2'"):
        _narcissism_model("GPT-2")


def test_every_evaluator_names_scores_made_from_its_leaves():
    for model in NARCISSISM_MODELS.values():
        assert reg[model.score].needs == (f"{model.statistic_prefix}_logp_source_hypothesis",) and reg[
            model.reference_score
        ].needs == (f"{model.statistic_prefix}_logp_reference_hypothesis",)
        assert Layout(**model.layout).sep == model.suffix


def test_an_evaluator_reads_as_its_row_says(oracle, reader, pairs):
    "GPT2 of the table, on the tiny GPT-2, gives what the original scorer gave with TL;DR."
    want, model = (
        oracle("seed_systems/s2s_likelihoods.json")["gptscore_gpt2"]["values"]["tldr_src_to_hyp"],
        NARCISSISM_MODELS["GPT2"],
    )
    given = texts_of([pairs[i] for i in want], ("summary", "source"))
    statistics, _ = directed_logp(
        reader("seed_systems/models/tiny_gpt2"),
        model.statistic_prefix,
        ["source_hypothesis"],
        **given,
        before=model.prefix,
        layout=Layout(**model.layout),
    )
    got = compute_score(ScoreRun(list(want), reg, **statistics), model.score)
    close(got["value"].fillna(0), [expected or 0 for expected in want.values()])
    assert got.loc[got["value"].isna(), "sample"].tolist() == ["p08"] and PEER_LAYOUT.window == 1024
