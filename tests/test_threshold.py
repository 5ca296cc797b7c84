"""Expected accuracy against the released protocol of Opitz 2024, and the printed tables."""

import random

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn import metrics as skm

from uetrust.evaluation import thresholds as th

NAME = dict(logistic="logistic", isotonic="isotonic", stump="threshold")


def close(a, b, tol):
    np.testing.assert_allclose(np.array(a, float), np.array(b, float), rtol=0, atol=tol)


@pytest.fixture(scope="session")
def synthetic(oracle):
    d = oracle("evaluation.json")["opitz_synthetic"]
    data = pd.concat([pd.DataFrame(v).assign(dataset=k) for k, v in d["data"].items()], ignore_index=True)
    return data, d


@pytest.fixture(scope="session")
def frank(oracle):
    o = oracle("evaluation.json")
    names = o["opitz_frank"]["metrics"]
    d = (
        pd.DataFrame({k: o["frank_valid_inputs"][k] for k in ["dataset", "Factuality", *names]})
        .dropna()
        .reset_index(drop=True)
    )
    d["label"] = (d["Factuality"] == 1).astype(int)
    return (
        d.drop(columns="Factuality").sort_values(
            "dataset", key=lambda s: s != "cnndm", kind="stable", ignore_index=True
        ),
        names,
        o["opitz_frank"]["results"]["valid"],
    )


def matches(recorded, data, domain, names, mode, classifier, measures=("accuracy", "kappa"), **options):
    table = th.expected_accuracy(data, domain, mode, classifier, "opitz2024", names, 20, **options)

    def grid(col):
        return (
            table.pivot(index="dataset", columns="metric", values=col)
            .loc[pd.unique(data["dataset"]), names]
            .to_numpy()
        )

    m = th.metrics_by_accuracy(table).loc[names]
    for measure in measures:
        want = recorded[f"{mode}/{NAME[classifier]}/{measure}"]
        close(grid("auc"), want["auc"], 1e-9)
        close(grid(measure), want["score"], 1e-9)
        close(m["auc"], want["mean_auc"], 1e-9)
        close(m[measure], want["mean_score"], 1e-9)


@pytest.mark.parametrize("classifier", th.CLASSIFIERS)
@pytest.mark.parametrize("mode", th.LEARNING_MODES)
def test_the_released_protocol_on_synthetic_data(synthetic, mode, classifier):
    data, d = synthetic
    matches(d["results"], data, d["domain"], d["metrics"], mode, classifier)


@pytest.mark.parametrize("classifier", th.CLASSIFIERS)
def test_balanced_class_weights(synthetic, classifier):
    data, d = synthetic
    matches(
        d["balanced_xdomain"], data, d["domain"], d["metrics"], "xdomain", classifier, class_weight="balanced"
    )


@pytest.mark.parametrize("classifier", th.CLASSIFIERS)
@pytest.mark.parametrize("mode", th.LEARNING_MODES)
def test_the_released_protocol_on_frank_as_two_domains(frank, mode, classifier):
    data, names, want = frank
    matches(want["results"], data, dict(cnndm="a", bbc="b"), names, mode, classifier)


@pytest.mark.parametrize("classifier", th.CLASSIFIERS)
def test_metrics_standardised_over_both_sets(frank, classifier):
    data, names, want = frank
    z = data.copy()
    z[names] = (z[names] - z[names].mean()) / z[names].std(ddof=0)
    matches(want["zscored_xdomain"], z, dict(cnndm="a", bbc="b"), names, "xdomain", classifier)


def test_frank_has_the_recorded_base_rates_and_the_constants_stand_beside(frank):
    data, _, want = frank
    table = th.expected_accuracy(data, dict(cnndm="a", bbc="b"), metrics=["Bleu"]).set_index("dataset")
    close(table["always_faithful"].loc[["cnndm", "bbc"]], list(want["base_rate"].values()), 1e-12)
    close(table["always_faithful"] + table["always_unfaithful"], 1, 1e-12)
    assert table["n_test"].to_dict() == dict(cnndm=339, bbc=290)


def agreements(rows, quoted, auc):
    "Quoted figures were rounded twice, to three digits, then half up to two (0.7248 -> 0.725 -> 0.73)."
    rho = [th.auc_agreement(pd.DataFrame(dict(auc=auc, accuracy=r))) for r in rows]
    assert [int(100 * round(r, 3) + 0.5 + 1e-9) / 100 for r in rho] == list(quoted)


def test_agreement_with_auc_in_the_printed_table():
    table = th.printed_opitz_table(4).drop(columns="AVG")
    want = dict(
        Xdomain=(0.81, 0.73, 0.63),
        OutDomain=(0.81, 0.72, 0.73),
        OutData=(0.83, 0.63, 0.70),
        InDomain=(0.78, 0.82, 0.84),
        InData=(0.92, 0.98, 0.92),
    )
    for mode, w in want.items():
        agreements([table.loc[f"{mode}|{c}"] for c in th.CLASSIFIERS], w, table.loc["AUC"])


def test_agreement_with_auc_per_data_set_and_by_kappa():
    auc, acc = th.printed_opitz_table(1), th.printed_opitz_table(2)
    rho = auc.drop("mean").T.corrwith(acc.drop("mean").T, method="spearman")
    assert rho.idxmin() == "mnbm" and rho.idxmax() == "dialfact"
    close([rho.min(), rho.max()], [-0.43, 0.95], 0.0051)
    kappa = th.printed_opitz_table(5).drop(columns="AVG")
    agreements([r for _, r in kappa.drop("AUC").iterrows()], (0.77, 0.76, 0.64, 0.84, 0.95), kappa.loc["AUC"])


def test_the_printed_tables_are_the_recorded_ones(oracle):
    for table, rows in oracle("evaluation.json")["opitz_printed_tables"].items():
        close(
            th.printed_opitz_table(int(table)).drop(columns="AVG", errors="ignore"),
            [r["values"] for r in rows],
            0,
        )


@given(st.lists(st.tuples(st.integers(0, 1), st.integers(0, 1), st.integers(0, 4)), min_size=2, max_size=30))
def test_measures_are_those_of_scikit_learn(rows):
    y, d, s = map(np.array, zip(*rows))
    got = th.classification_rates(y, d)
    close(got.accuracy, skm.accuracy_score(y, d), 1e-12)
    if len(set(y) | set(d)) > 1:
        close(got.kappa, skm.cohen_kappa_score(y, d), 1e-12)
    else:
        assert np.isnan(got.kappa)
    if len(set(y)) > 1:
        close(
            (th.auc(y, s), got.balanced_accuracy),
            (skm.roc_auc_score(y, s), skm.balanced_accuracy_score(y, d)),
            1e-12,
        )
    else:
        assert np.isnan([th.auc(y, s), got.balanced_accuracy]).all()


def test_the_principled_preset_does_not_depend_on_the_scale_of_a_metric(synthetic):
    data, d = synthetic
    other = data.assign(prob=data["prob"] / 1000 + 7)
    for c in th.CLASSIFIERS:
        a, b = (th.expected_accuracy(x, d["domain"], classifier=c, metrics=["prob"]) for x in (data, other))
        close(a["accuracy"], b["accuracy"], 1e-12)
    a, b = (th.expected_accuracy(x, d["domain"], preset="opitz2024", metrics=["prob"]) for x in (data, other))
    assert (a["accuracy"] != b["accuracy"]).any()


def test_principled_splits_keep_shares_and_leave_the_global_generators_alone(synthetic):
    y = np.repeat([0, 1], [90, 10])
    for learn, test in th.random_splits(y, 5, "principled", np.random.default_rng(3)):
        assert sorted([*learn, *test]) == list(range(100)) and (len(test), y[test].sum()) == (20, 2)
    data, d = synthetic
    random.seed(1)
    np.random.seed(1)
    before = random.getstate(), np.random.get_state()[1].copy()
    a, b = (
        th.expected_accuracy(data, d["domain"], "indata", "stump", metrics=["level"], repeats=3)
        for _ in range(2)
    )
    pd.testing.assert_frame_equal(a, b)
    assert random.getstate() == before[0] and (np.random.get_state()[1] == before[1]).all()


def test_a_class_of_two_is_on_both_sides_of_a_principled_split():
    labels = np.array([0] * 8 + [1] * 2)
    for learn, test in th.random_splits(labels, 5, "principled", np.random.default_rng(3)):
        assert labels[learn].sum() == labels[test].sum() == 1


def test_a_table_counts_the_rows_that_were_learned_from_and_decided_on(synthetic):
    data, d = synthetic
    table = th.expected_accuracy(data, d["domain"], "outdata", metrics=["level"]).set_index("dataset")
    counts = data["dataset"].value_counts()
    assert (table["n_learn"] == counts[table.index]).all() and (table["n_learn"] != table["n_test"]).any()
    assert (table["n_learn"] + table["n_test"] == len(data)).all()


def test_what_cannot_be_done_is_said():
    data = pd.DataFrame(dict(dataset=list("aabb"), label=[0, 1, 0, 1], m=[0.1, 0.2, np.nan, 0.4]))
    with pytest.raises(ValueError, match="m lack scores"):
        th.expected_accuracy(data, dict(a=1, b=2))
    data = data.fillna(0.3)
    with pytest.raises(ValueError, match="no domain is given for b"):
        th.expected_accuracy(data, dict(a=1))
    with pytest.raises(ValueError, match="outdomain leaves a with 0 rows"):
        th.expected_accuracy(data, dict(a=1, b=1), "outdomain")
    with pytest.raises(ValueError, match="found 3"):
        th.expected_accuracy(data.assign(label=[0, 1, 3, 1]), dict(a=1, b=2))
    with pytest.raises(ValueError, match="got 'cross'"):
        th.expected_accuracy(data, dict(a=1, b=2), "cross")
