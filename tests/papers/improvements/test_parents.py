"""Methods and their parents: differences that exist and that do not, documents, what is stored."""

import numpy as np
import pandas as pd
import pytest

from uetrust.core.registry import reg
from uetrust.evaluation.prr import prr_difference
from uetrust.papers.improvements import parents as pa


def texts(seed=0, n=120, better=0.0, documents=None):
    "Scores of kle and cocoa_msp that know as much as their parents; kle knows more by `better`"
    rng = np.random.default_rng(seed)
    truth = pd.Series(rng.normal(size=n))
    noise = rng.normal(size=(n, 4)) * [1, max(1 - better, 0.05), 1, 1]
    names = ["semantic_entropy", "kle", "msp", "cocoa_msp"]
    scores = pd.DataFrame(noise, columns=names).sub(truth, axis=0)
    return pa.ComparedTexts(truth, scores, pd.Series(range(n) if documents is None else documents))


def test_every_parent_is_a_score_that_came_first():
    known = pa.methods_with_parent(0)
    assert set(known["parent"]) <= set(reg.of("ue")) and len(known) > 20
    for row in known.itertuples():
        assert row.parent != row.method and pa.method_year(row.parent) <= row.year, row
    assert (pa.methods_with_parent(2025)["year"] >= 2025).all()


def test_a_difference_is_that_of_the_paired_test():
    one = texts()
    table, spread = pa.differences_from_parents(dict(a=one))
    row = table.set_index("method").loc["kle"]
    found = prr_difference(one.truth, one.scores["kle"], one.scores["semantic_entropy"])
    assert row[["difference", "lo", "hi", "p"]].tolist() == pytest.approx(
        [found.value, found.lo, found.hi, found.p]
    )
    assert (table["p_joint"] >= table["p"] - 0.01).all() and list(spread) == list(table.index)


def test_documents_are_resampled_and_not_their_texts():
    one = texts(documents=np.repeat(range(30), 4))
    table = pa.differences_from_parents(dict(a=one))[0].set_index("method")
    found = prr_difference(
        one.truth, one.scores["kle"], one.scores["semantic_entropy"], document=one.document
    )
    assert table.loc["kle", ["lo", "hi"]].tolist() == pytest.approx([found.lo, found.hi])


def test_what_is_better_is_found_and_what_is_not_is_not():
    sets = {name: texts(seed, better=0.9) for seed, name in enumerate("abc")}
    facts = pa.improvement_facts(pa.mean_differences(*pa.differences_from_parents(sets), list(sets)))
    assert (facts.methods, facts.better, facts.worse, facts.undecided) == (2, ["kle"], [], 1)
    assert facts.joint_p < 0.001
    worse = {
        name: one._replace(
            scores=one.scores.rename(columns=dict(kle="semantic_entropy", semantic_entropy="kle"))
        )
        for name, one in sets.items()
    }
    facts = pa.improvement_facts(pa.mean_differences(*pa.differences_from_parents(worse), list(worse)))
    assert (facts.better, facts.worse) == ([], ["kle"])


def test_sets_of_the_same_documents_have_correlated_errors():
    "Twice the same set says no more than once; sets of other documents say more"
    one, other = texts(), texts(1)
    alone = pa.mean_differences(*pa.differences_from_parents(dict(a=one)), ["a"]).set_index("method")
    same = pa.mean_differences(*pa.differences_from_parents(dict(a=one, b=one)), ["a", "b"])
    columns = ["difference", "lo", "hi"]
    pd.testing.assert_frame_equal(same.set_index("method")[columns], alone[columns])
    apart = other._replace(document="other " + other.document.astype(str))
    more = pa.mean_differences(*pa.differences_from_parents(dict(a=one, b=apart)), ["a", "b"])
    width = (more["hi"] - more["lo"]).to_numpy() / (alone["hi"] - alone["lo"])[more["method"]]
    assert (width < 0.85).all() and (more["sets"] == 2).all()


def test_methods_that_are_no_better_are_rarely_called_so():
    "The level of the joint test: 5 % of studies in which no method differs"
    found = [
        pa.improvement_facts(pa.differences_from_parents(dict(a=texts(seed, n=60)))[0]).joint_p < 0.05
        for seed in range(100)
    ]
    assert sum(found) <= 12


def test_gaps_and_two_values():
    one = texts(n=40)
    one.scores.loc[:5, "kle"] = np.nan
    binary = one._replace(truth=(one.truth > 0).astype(float))
    table = pa.differences_from_parents(dict(b=binary))[0]
    assert table.groupby("measure")["n"].unique().map(sorted).to_dict() == dict(PRR=[34, 40], AUROC=[34, 40])
    assert "kle" not in binary.comparable()
    few = one._replace(scores=one.scores.iloc[:8], truth=one.truth.iloc[:8])
    with pytest.raises(ValueError, match="on few no method has a difference from its parent"):
        pa.differences_from_parents(dict(few=few))
    assert not len(pa.differences_from_parents({})[0])


def test_auroc_without_a_document_is_that_of_the_others():
    rng = np.random.default_rng(4)
    bad, score, ids = rng.random(30) < 0.4, rng.integers(0, 5, (30, 1)).astype(float), np.arange(30) // 3
    value, without = pa._auroc_replicates(bad, score, ids)

    def auroc(kept):
        gap = score[kept & bad] - score[kept & ~bad].T
        return ((gap > 0) + 0.5 * (gap == 0)).mean()

    assert value[0] == pytest.approx(auroc(np.ones(30, bool)))
    assert without[:, 0] == pytest.approx([auroc(ids != unit) for unit in range(10)])


def test_the_same_order_as_the_parent_is_no_evidence():
    one = texts(n=40)
    same = one._replace(scores=one.scores.assign(kle=one.scores["semantic_entropy"]))
    table = pa.differences_from_parents(dict(a=same))[0].set_index("method")
    assert table.loc["kle", "difference"] == 0 and np.isnan(table.loc["kle", "p_joint"])
    assert not np.isnan(table.loc["cocoa_msp", "p_joint"])


def test_stored_answers_have_their_truth_and_say_what_they_lack():
    found, _ = pa.stored_sets()
    questions = found["questions"]
    assert questions.truth.isin([0, 1]).all() and {"kle", "semantic_entropy"} <= set(questions.scores)
    assert "luq" not in pa.without_new_methods(dict(q=questions))["q"]
