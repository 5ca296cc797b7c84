"""Facts of the threshold study: counts, ranges and intervals that the pages state."""

import numpy as np
import pandas as pd
import pytest

from uetrust.evaluation.correlations import fisher_interval
from uetrust.papers.ledger.cells import CELL_STATUS, ROUNDING_NOTE
from uetrust.papers.threshold import tables
from uetrust.papers.threshold.released import ThresholdItems


def outcomes(**columns):
    "Two cases, by domain and by system, as `auc_correlations` gives them"
    names = ("accuracy", "kappa", "balanced_accuracy")
    case = dict(mode="xdomain", classifier="logistic", layout=["domain", "system"], preset="principled")
    rho = {f"rho_{name}": [0.3, 0.7] for name in names} | {f"p_{name}": 0.4 for name in names}
    means = dict(accuracy=[0.4, 0.6], balanced_accuracy=[0.5, 0.55], from_prior=[-0.1, 0.05])
    rest = dict(always_unfaithful=0.6, below_always_unfaithful=[11, 4], majority=0.7, below_majority=9)
    return pd.DataFrame(case | rho | means | rest | dict(metrics=11, rho_own_auc=0.9, silent=0.5) | columns)


def test_dropped_texts_are_named_by_set_and_complete_sets_are_not():
    data = pd.DataFrame(dict(dataset="a", label=[0, 1, 1], m=1.0, n=2.0))
    facts = tables.complete_texts(ThresholdItems(data, {}, dict(a=0, b=2)))
    assert facts == (3, 5, 2, dict(b=2))


def test_intervals_of_a_case_are_those_of_its_own_rho():
    cases = tables.case_facts(outcomes()).reset_index()
    for row in cases.itertuples():
        for measure in ("accuracy", "balanced_accuracy"):
            ends = getattr(row, f"{measure}_lo"), getattr(row, f"{measure}_hi")
            assert ends == pytest.approx(fisher_interval(getattr(row, f"rho_{measure}"), 11, "spearman"))
    assert cases["accuracy_lo"].is_monotonic_increasing and cases["rho_accuracy"].tolist() == [0.3, 0.7]


def test_checked_contradicted_and_rounded_cells_have_counts_of_their_own():
    led = pd.DataFrame(
        dict(
            status=[CELL_STATUS[2]] * 3 + [CELL_STATUS[0]],
            agrees=[False, True, True, True],
            reason=["a rank", ROUNDING_NOTE, ROUNDING_NOTE, ""],
            recomputed=[1.0, 2.0, np.nan, 3.0],
        )
    )
    assert tables.check_facts(led) == (3, 4, 1, 1)


def test_agreement_is_split_by_where_a_threshold_is_learned():
    by_setting = pd.DataFrame(dict(rho=[0.9, 0.95, 0.6, 0.8]), ["InData|a", "InData|b", "Xdomain|a", "Out"])
    by_set = pd.DataFrame(
        dict(rho=[0.5, -0.4, 0.9], best_by_auc=["ANLI", "Q2", "BLEU"], its_rank=[2.0, 10.0, 1.0]), list("xyz")
    )
    facts = tables.printed_rho_facts(by_setting, by_set)
    assert facts == ((0.9, 0.95), (0.6, 0.8), -0.4, "y", "Q2", 10, 0.9, "z")


def test_equal_cases_count_once_and_the_released_protocol_not_at_all():
    both = pd.concat([outcomes(), outcomes(mode="outdata"), outcomes(preset="opitz2024", accuracy=0.1)])
    facts = tables.all_cases_facts(both)
    assert facts.cases == 2 and facts.beaten == 1 and facts.limit == pytest.approx(0.618, abs=1e-3)
    assert facts.predicted == dict(accuracy=1, kappa=1, balanced_accuracy=1)
    assert (facts.accuracy, facts.from_prior) == ((0.4, 0.6), (-0.1, 0.05))


def test_a_rho_at_the_limit_predicts():
    limit = tables.all_cases_facts(outcomes()).limit
    facts = tables.all_cases_facts(outcomes(rho_accuracy=[limit, limit - 1e-6]))
    assert facts.predicted["accuracy"] == 1


def test_auc_of_decisions_is_that_of_splits_by_the_released_code():
    assert tables.decision_auc_facts(outcomes()) is None
    released = outcomes(mode="indata", preset="opitz2024", layout="domain", rho_own_auc=[0.8, 0.9])
    assert tables.decision_auc_facts(released) == ((0.8, 0.9), (0.3, 0.7))
