"""Metric drift: shipped metrics give their stored values, and score shuffled words below the reference."""

import copy
import json

import numpy as np
import pandas as pd
import pytest
from conftest import warn_unmeasured

from uetrust.core.registry import load_scores
from uetrust.core.settings import root
from uetrust.data.bulletins import bulletins
from uetrust.scoring import drift
from uetrust.scoring.drift import DRIFT_FILE, drift_check, drift_texts, metric_drift, write_drift_check
from uetrust.scoring.metrics import compute_metrics
from uetrust.scoring.providers import shipped_models

reg = load_scores()


@pytest.fixture(scope="module")
def found():
    return drift_check(shipped_models())


@pytest.fixture(scope="module")
def kept():
    return json.loads((root() / DRIFT_FILE).read_text())


# Canaries
def test_the_metrics_say_what_is_on_file(found, kept):
    "After a change that is meant: uetrust canaries --write"
    assert metric_drift(kept, found) == []
    warn_unmeasured(found["metrics"], kept["metrics"], "make cards")
    assert len(kept["metrics"]) >= 76
    assert all(len(stored["values"]) == 4 for stored in kept["metrics"].values())


def test_the_fingerprints_on_file_are_those_of_the_shipped_weights(found, kept):
    for name, stored in kept["metrics"].items():
        assert stored["read_by"] == found["metrics"][name]["read_by"], name


@pytest.mark.parametrize(
    "change,says",
    [
        (
            lambda stored: stored["metrics"]["bart_score"]["values"].__setitem__(1, -9.0),
            ["bart_score: other was -9"],
        ),
        (
            lambda stored: stored["metrics"]["rouge_l"]["values"].__setitem__(0, None),
            ["rouge_l: good was None"],
        ),
        (
            lambda stored: stored["metrics"].update(gone=dict(values=[1] * 4, read_by=[])),
            ["gone: is not computed"],
        ),
        (lambda stored: stored.update(texts="x"), ["the four texts have changed"]),
    ],
)
def test_what_moved_is_named(kept, change, says):
    other = copy.deepcopy(kept)
    change(other)
    assert [
        sentence.startswith(beginning)
        for sentence, beginning in zip(metric_drift(other, kept), says, strict=True)
    ] == [True]


def test_a_change_of_libraries_is_named_beside_the_score(kept):
    other = copy.deepcopy(kept)
    other["metrics"]["bart_score"]["values"][0] += 1
    other["made_with"]["torch"] = "1.0"
    (sentence,) = metric_drift(other, kept)
    assert f"torch 1.0 is now {kept['made_with']['torch']}" in sentence
    assert "the code has changed" in metric_drift(dict(other, made_with=kept["made_with"]), kept)[0]


# Sense
_NLI, _TWO, _REFERENCE = (
    "an NLI model was never shown shuffled words",
    "a difference of two likelihoods, and shuffling lowers both",
    "it is the reference that is scored",
)
MAY = dict(  # Why word salad may beat the reference on some text
    judge_own_consistency="the checker that taught the judge finds no error in text that it cannot parse",
    judge_own_consistency_expected="as judge_own_consistency",
    gpt_score_recall=_REFERENCE,
    cop=_TWO,
    cop_causal=_TWO,
    fflm=_TWO,
    fflm_equal=_TWO,
    fflm_wo_w_and_log=_TWO,
    fflm_wo_log=_TWO,
    fflm_x_prior=_TWO,
    fflm_y_cond=_TWO,
    summac_zs=_NLI,
    summac_zs_entailment=_NLI,
    summac_zs_paragraph=_NLI,
    summac_conv=_NLI,
    summac_he2024=_NLI,
    mnli_doc=_NLI,
)
BLIND = {"rouge_1", "bleu_1_true", "token_f1_true"}  # These count words and do not see their order
ON_AVERAGE = {
    "cop_causal",
    "fflm_wo_log",
    "fflm_y_cond",
    "judge_own_consistency",
    "judge_own_consistency_expected",
    "summac_zs",
}  # Of `MAY`, those whose mean is no better for the references


def disordered(
    n, metrics="all"
):  # References and their words in random order, graded: sample x score, and the texts
    b, rng = bulletins("test", n), np.random.default_rng(0)
    salad = [" ".join(rng.permutation(r.split())) for r in b["reference"]]
    texts = pd.DataFrame(
        dict(
            id=[f"{stored}{i}" for stored in ("ref", "salad") for i in range(n)],
            hypothesis=[*b["reference"], *salad],
            source=[*b["source"]] * 2,
            reference=[*b["reference"]] * 2,
        )
    )
    return compute_metrics(texts, shipped_models(), metrics, progress=False).pivot(
        index="sample", columns="name", values="value"
    ), texts


@pytest.fixture(scope="module")
def pairs():
    return disordered(12)


def sides(w, n):
    v, salad = w[n] * reg[n].sign, w.index.str.startswith("salad")
    return v[~salad].to_numpy(), v[salad].to_numpy()


def test_the_reference_is_beaten_by_its_words_in_disorder_only_where_it_may_be(pairs):
    beaten = {n for n in pairs[0] for ref, salad in [sides(pairs[0], n)] if (salad > ref).any()}
    assert beaten == set(MAY) and len(pairs[0].columns) >= 76
    worse = {n for n in pairs[0] for ref, salad in [sides(pairs[0], n)] if not ref.mean() > salad.mean()}
    assert worse == BLIND | ON_AVERAGE and ON_AVERAGE < set(MAY)


def test_no_answer_of_tiny_unieval_prefers_disorder():
    "Weights that knew more about facts failed here, which twelve texts hardly showed"
    names = [
        f"unieval_{d}{end}"
        for d in ("consistency", "coherence", "fluency", "overall")
        for end in ("", "_he2024")
    ]
    w, _ = disordered(100, names)
    assert set(w) == set(names) and not [n for n in w for ref, salad in [sides(w, n)] if (salad >= ref).any()]


def test_the_order_of_the_samples_is_irrelevant(pairs):
    w, texts = pairs
    back = compute_metrics(texts.iloc[::-3], shipped_models(), progress=False).pivot(
        index="sample", columns="name", values="value"
    )
    for n in back:
        if "idf" in n:
            continue  # Weighs tokens by how rare they are among the references that are given
        x, y = back[n], w.loc[back.index, n]
        np.testing.assert_allclose(x, y, atol=4e-6, rtol=4e-6, err_msg=n)


# Files and messages
def test_the_four_texts_are_a_good_one_anothers_a_copy_and_a_broken_one():
    texts, items = drift_texts(), bulletins("test", 4)
    assert list(texts) == ["id", "hypothesis", "source", "reference"] and len(texts) == 4
    assert dict(zip(texts["id"], texts["hypothesis"])) == dict(
        good=items["paraphrase"][0],
        other=items["reference"][0],
        copied=texts["source"][2],
        broken="Council the. 3 of",
    )


def test_values_stand_in_the_order_in_which_they_were_asked_for():
    checked = drift_check({}, ["rouge_l", "bleu"])
    assert list(checked["metrics"]) == ["rouge_l", "bleu"]
    assert [len(found["values"]) for found in checked["metrics"].values()] == [4, 4]


@pytest.mark.parametrize("path", ["mine.json", None])
def test_values_are_written_as_lines_that_a_diff_can_show(tmp_path, monkeypatch, path):
    monkeypatch.setattr(drift, "root", lambda: tmp_path)
    write_drift_check(dict(texts="x", metrics=dict(bleu=[1.0])), path and tmp_path / path)
    text = (tmp_path / (path or DRIFT_FILE)).read_text()
    assert text == '{\n "texts": "x",\n "metrics": {\n  "bleu": [\n   1.0\n  ]\n }\n}\n'


def drifted(before, now, read_by=("m 1", "m 1"), libraries=({}, {})):
    "What is said of one metric whose first value was `before` and is `now`"

    def check(value, model, made_with):
        metrics = dict(bleu=dict(values=[value, 1, 2, 3], read_by=[model]))
        return dict(texts="x", made_with=made_with, metrics=metrics)

    return metric_drift(*map(check, (before, now), read_by, libraries))


@pytest.mark.parametrize("before, step", [(0.5, 1.0), (-0.5, 1.0), (1.5, 1.5), (-400.0, 400.0)])
def test_a_value_may_move_by_2e_5_relative_to_values_above_1(before, step):
    assert drifted(before, before + 1.9e-5 * step) == drifted(before, before - 1.9e-5 * step) == []
    (sentence,) = drifted(before, before + 2.1e-5 * step)
    assert sentence.startswith(f"bleu: good was {before}, is ") and len(drifted(before, -before)) == 1


def test_a_score_that_comes_or_goes_has_drifted():
    assert drifted(None, None) == []
    assert drifted(None, 0.5)[0].startswith("bleu: good was None, is 0.5 (")
    assert drifted(0.5, None)[0].startswith("bleu: good was 0.5, is None (")


def test_causes_are_named_the_model_first():
    libraries = dict(torch="1", numpy="2", scipy="3"), dict(torch="1.1", numpy="2")
    changed = "torch 1 is now 1.1; scipy 3 is now gone"
    assert drifted(0, 1, libraries=libraries) == [f"bleu: good was 0, is 1 ({changed})"]
    read = "read by b 2 instead of a 1"
    assert drifted(0, 1, ("a 1", "b 2"), libraries) == [f"bleu: good was 0, is 1 ({read}; {changed})"]
    same = "same weights, same libraries: the code has changed"
    assert drifted(0, 1) == [f"bleu: good was 0, is 1 ({same})"]
