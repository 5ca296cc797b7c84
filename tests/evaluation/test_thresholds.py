"""Expected accuracy against the released protocol of Opitz 2024, and the printed tables."""

import random

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn import metrics as skm
from sklearn.isotonic import IsotonicRegression
from sklearn.linear_model import LogisticRegression
from sklearn.tree import DecisionTreeClassifier

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


def test_frank_has_the_recorded_base_rates_and_constants(frank):
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
    got = th._classification_rates(y, d)
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
    for learn, test in th._random_splits(y, 5, "principled", np.random.default_rng(3)):
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
    for learn, test in th._random_splits(labels, 5, "principled", np.random.default_rng(3)):
        assert labels[learn].sum() == labels[test].sum() == 1


def test_a_table_counts_the_rows_that_were_learned_from_and_decided_on(synthetic):
    data, d = synthetic
    table = th.expected_accuracy(data, d["domain"], "outdata", metrics=["level"]).set_index("dataset")
    counts = data["dataset"].value_counts()
    assert (table["n_learn"] == counts[table.index]).all() and (table["n_learn"] != table["n_test"]).any()
    assert (table["n_learn"] + table["n_test"] == len(data)).all()


def test_what_cannot_be_done_is_reported():
    data = pd.DataFrame(dict(dataset=list("aabb"), label=[0, 1, 0, 1], m=[0.1, 0.2, np.nan, 0.4]))
    with pytest.raises(ValueError, match="m have missing scores"):
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


# Thresholds of many scores at once
def case(seed, n=70, s=25):
    rng = np.random.default_rng(seed)
    labels = (rng.random(n) < rng.choice([0.1, 0.5, 0.85])).astype(int)
    labels[:2] = 0, 1
    x = labels[:, None] * rng.normal(size=s) * 2 + rng.normal(size=(n, s))
    x[:, ::3] = x[:, ::3].round(int(seed % 2))
    return x * 10.0 ** rng.integers(-4, 4, s), labels, rng


@pytest.mark.parametrize("classifier", th.CLASSIFIERS)
@pytest.mark.parametrize("seed", range(12))
def test_all_thresholds_at_once_decide_like_one_after_the_other(seed, classifier):
    x, labels, rng = case(seed)
    new = np.concatenate([x, x[rng.permutation(70)] + x.std(0) * rng.normal(size=x.shape) * 0.3])
    got = th.apply_thresholds(th.learn_thresholds(x, labels, classifier), new)
    want = (
        np.stack([th.fit_classifier(classifier, x[:, j], labels)(new[:, j]) for j in range(x.shape[1])], 1)
        == 1
    )
    assert (got != want).mean() < 0.0005, np.argwhere(got != want)[
        :5
    ]  # a score within 1e-4 of the cut of an optimizer that stops early


@pytest.mark.parametrize("seed", range(6))
def test_balanced_thresholds_are_those_of_weighted_texts(seed):
    x, labels, rng = case(seed + 50)
    w = len(labels) / (2 * np.bincount(labels))[labels]
    for j in range(x.shape[1]):
        v, z = x[:, j], ((x[:, j] - x[:, j].mean()) / x[:, j].std())[:, None]
        want = dict(
            logistic=LogisticRegression(tol=1e-10).fit(z, labels, w).predict(z) == 1,
            isotonic=IsotonicRegression(out_of_bounds="clip").fit(v, labels, w).predict(v) > 0.5 + 1e-9,
            stump=DecisionTreeClassifier(max_depth=1, random_state=0)
            .fit(v[:, None] / abs(v).max(), labels, w)
            .predict(v[:, None] / abs(v).max())
            == 1,
        )
        for c in ("logistic", "isotonic"):
            np.testing.assert_array_equal(
                th.apply_thresholds(th.learn_thresholds(x[:, [j]], labels, c, True), x[:, [j]])[:, 0],
                want[c],
                c,
            )
        a, b = (
            th._classification_rates(labels, d).balanced_accuracy
            for d in (
                th.apply_thresholds(th.learn_thresholds(x[:, [j]], labels, "stump", True), x[:, [j]])[:, 0],
                want["stump"],
            )
        )
        assert a == pytest.approx(b, abs=0.05)


def test_one_class_or_one_value_teaches_only_a_constant():
    x = np.array([[1.0, 2], [2, 2], [3, 2], [4, 2]])
    for c in th.CLASSIFIERS:
        for says in (0, 1):
            assert (
                th.apply_thresholds(th.learn_thresholds(x, np.full(4, says), c), x * 100) == (says == 1)
            ).all()
        assert (
            not th.apply_thresholds(th.learn_thresholds(x, np.array([0, 0, 1, 0]), c), x)[:, 1].any()
            and th.apply_thresholds(th.learn_thresholds(x, np.array([1, 0, 1, 1]), c), x)[:, 1].all()
        )


def test_separated_and_lopsided_texts_settle():
    n = 400
    x = np.stack(
        [
            np.arange(n) * 1.0,
            np.r_[np.zeros(n - 1), 1e6],
            np.r_[np.full(n // 2, -1e-9), np.full(n // 2, 1e-9)],
        ],
        1,
    )
    for labels in (
        (np.arange(n) >= n // 2).astype(int),
        (np.arange(n) == n - 1).astype(int),
        (np.arange(n) > 0).astype(int),
    ):
        got = th.apply_thresholds(th.learn_thresholds(x, labels), x)
        for j in range(3):
            assert (
                got[:, j] == (th.fit_classifier("logistic", x[:, j], labels)(x[:, j]) == 1)
            ).mean() >= 0.995


def test_no_upward_cut_beats_hindsight():
    x, labels, _ = case(3)
    best = [
        max(((x[:, j] > t) == (labels == 1)).mean() for t in [-np.inf, *x[:, j]]) for j in range(x.shape[1])
    ]
    np.testing.assert_allclose(th.hindsight_accuracy(x, labels), best)
    assert (th.hindsight_accuracy(x, labels) >= max(labels.mean(), 1 - labels.mean())).all()


@pytest.mark.parametrize(
    "classifier, x, y, at, up",
    [
        ("stump", [1, 2, 4, 8], [0, 0, 1, 1], 3, True),
        ("stump", [8, 4, 2, 1], [0, 0, 1, 1], 3, False),
        ("stump", [1, 2, 4, 8], [1, 1, 1, 1], -np.inf, True),
        ("stump", [1, 2, 4, 8], [0, 0, 0, 0], np.inf, True),
        ("stump", [3, 3, 3], [1, 1, 0], -np.inf, True),
        ("stump", [3, 3, 3, 3], [1, 0, 1, 0], np.inf, True),  # A tie means 0
        ("isotonic", [0, 1], [0, 1], 0.5, True),
        ("isotonic", [0, 1, 2, 3], [0, 1, 0, 1], 2, True),  # Fitted 0, .5, .5, 1
        ("isotonic", [0, 1, 2, 3], [0, 0, 1, 1], 1.5, True),
        ("isotonic", [0, 1, 2, 6], [1, 0, 0, 1], 2 + 4 * (1 / 2 - 1 / 3) / (1 - 1 / 3), True),
        ("isotonic", [0, 1, 2, 3], [1, 1, 0, 1], -np.inf, True),
        ("isotonic", [0, 1, 2, 3], [1, 0, 0, 0], np.inf, True),
        ("logistic", [-1, 1, -1, 1], [0, 0, 1, 1], np.inf, True),
        ("logistic", [2, 4], [0, 1], 3, True),
        ("logistic", [4, 2], [0, 1], 3, False),
        ("logistic", [5, 5, 5], [1, 1, 0], -np.inf, True),
    ],
)
def test_thresholds_of_few_texts_are_those_worked_by_hand(classifier, x, y, at, up):
    found = th.learn_thresholds(np.array(x, float)[:, None], np.array(y), classifier)
    assert found.at[0] == pytest.approx(at, abs=1e-9) and found.up.tolist() == [up]
    assert th.learn_thresholds(np.array(x, float)[:, None], np.array(y), classifier, False) == found


def test_a_score_equal_to_its_threshold_lies_below_it():
    cut = th.Threshold(np.array([1.0, 1.0]), np.array([True, False]))
    assert th.apply_thresholds(cut, np.array([[1.0, 1.0], [2.0, 2.0]])).tolist() == [
        [False, True],
        [True, False],
    ]


def test_balanced_weights_count_both_classes_the_same():
    x, y = np.array([[1.0], [1], [1], [1], [2], [2]]), np.array([0, 0, 1, 1, 1, 0])
    shares = (y == 1).mean()
    assert shares == 0.5
    few = np.array([0, 0, 0, 1, 1, 0])  # 2 of 6: at x = 2 half of the texts, but 2/3 of the weight
    plain, balanced = (th.learn_thresholds(x, few, "stump", how) for how in (False, True))
    assert plain.at[0] == np.inf and (balanced.at[0], balanced.up[0]) == (1.5, True)


def test_hindsight_takes_the_best_of_all_upward_thresholds():
    x = np.array([[1.0, 4], [2, 3], [3, 2], [4, 1]])
    assert th.hindsight_accuracy(x, np.array([0, 0, 1, 1])).tolist() == [1, 0.5]
    assert th.hindsight_accuracy(np.ones((4, 1)), np.array([0, 1, 1, 1])).tolist() == [0.75]


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_a_logistic_regression_that_does_not_settle_says_so():
    x = np.array([[np.inf], [1.0], [0.0]])
    with pytest.raises(
        ValueError, match="did not settle in 100 steps on 3 texts; the scores may hold values"
    ):
        th.learn_thresholds(x, np.array([0, 1, 1]))


# Rates and protocols worked by hand
def test_rates_of_four_decisions_are_those_worked_by_hand():
    """Two of three right: accuracy 3/4 with labels 1 1 1 0 and decisions 1 1 0 0. Chance agrees in
    3/4 * 1/2 + 1/4 * 1/2 = 1/2, so kappa is 1/2; the classes are right in 2/3 and 1/1."""
    got = th._classification_rates(np.array([1, 1, 1, 0]), np.array([1, 1, 0, 0]))
    assert got == pytest.approx((3 / 4, 1 / 2, 5 / 6, 3 / 4, 1 / 4))
    one = th._classification_rates(np.array([1, 1]), np.array([1, 0]))
    assert one[:2] == (0.5, 0) and np.isnan(one.balanced_accuracy) and one[3:] == (1, 0)


def test_auc_exists_with_one_text_of_a_class_and_not_without():
    assert th.auc(np.array([1, 0, 0]), np.array([2, 1, 3])) == 0.5
    assert th.auc(np.array([1, 1, 0]), np.array([2, 1, 1])) == 0.75
    assert np.isnan(th.auc(np.array([1, 1]), np.array([2, 1])))
    assert np.isnan(th.auc(np.array([0, 0]), np.array([2, 1])))


TWO = pd.DataFrame(
    dict(dataset=["a"] * 10 + ["b"] * 20, label=[0, 1] * 15, m=[0.0, 1] * 15, k=[3.0, 4, 5] * 10)
)


def test_a_lone_data_set_of_its_domain_is_split_25_times_and_others_a_hundred_times():
    table = th.expected_accuracy(TWO, dict(a="x", b="y"), "indomain", "stump", metrics=["m"], repeats=3)
    assert table["tests"].tolist() == [25, 25] and table["n_learn"].tolist() == [8, 16]
    data = th.expected_accuracy(TWO, dict(a="x", b="x"), "indata", "stump", metrics=["m"])
    assert data["tests"].tolist() == [100, 100] and data["accuracy"].tolist() == [1, 1]
    both = th.expected_accuracy(TWO, dict(a="x", b="x"), "indomain", "stump")
    assert both[["dataset", "metric", "tests", "n_learn", "n_test"]].to_numpy().tolist() == [
        ["a", "m", 1, 20, 10],
        ["a", "k", 1, 20, 10],
        ["b", "m", 1, 10, 20],
        ["b", "k", 1, 10, 20],
    ]


def test_splits_depend_on_the_seed_which_is_0_by_default():
    def accuracy(**options):
        return th.expected_accuracy(
            TWO, dict(a=1, b=1), "indata", "stump", metrics=["k"], repeats=5, **options
        )

    pd.testing.assert_frame_equal(accuracy(), accuracy(seed=0))
    assert not accuracy().equals(accuracy(seed=1)) and not accuracy(seed=2).equals(accuracy(seed=1))


@pytest.mark.parametrize(
    "preset, sizes", [("principled", [(4, 1), (8, 2), (80, 20)]), ("opitz2024", [(4, 1), (8, 2), (80, 20)])]
)
def test_four_fifths_are_learned_from(preset, sizes):
    rng = random.Random(0) if preset == "opitz2024" else np.random.default_rng(0)
    for n, size in zip((5, 10, 100), sizes):
        (parts,) = th._random_splits(np.zeros(n, int), 1, preset, rng)
        assert tuple(map(len, parts)) == size and sorted([*parts[0], *parts[1]]) == list(range(n))


def test_a_single_text_of_a_class_is_learned_from():
    labels = np.array([0] * 5 + [1])
    for learn, test in th._random_splits(labels, 3, "principled", np.random.default_rng(1)):
        assert labels[learn].sum() == 1 and labels[test].sum() == 0 and len(test) == 1


def test_a_mean_over_splits_is_that_of_the_splits_that_have_a_value():
    values = np.array([[np.nan, 1, np.nan], [np.nan, 3, 5]])
    np.testing.assert_array_equal(th.mean_of_defined(values, 0), [np.nan, 2, 5])


def test_metrics_are_ranked_by_their_mean_over_data_sets_the_best_first():
    rows = [
        ("a", "z", 0.6),
        ("b", "z", 0.8),
        ("a", "y", 0.9),
        ("b", "y", 0.7),
        ("a", "x", 0.7),
        ("b", "x", 0.7),
        ("a", "w", np.nan),
        ("b", "w", 1.0),
    ]
    table = pd.DataFrame(rows, columns=["dataset", "metric", "accuracy"]).assign(
        **dict.fromkeys(set(th.ACCURACY_FIELDS) - {"accuracy"}, 0.5)
    )
    means = th.metrics_by_accuracy(table)
    assert list(means.index) == ["z", "y", "x", "w"], "in the order of the table"
    assert means["rank"].fillna(0).tolist() == [2, 1, 3, 0] and means["accuracy"].round(9).tolist()[:3] == [
        0.7,
        0.8,
        0.7,
    ]


@pytest.mark.parametrize("table", [0, 3, 6])
def test_only_the_tables_1_2_4_and_5_are_transcribed(table):
    with pytest.raises(ValueError, match=rf"table is one of \[1, 2, 4, 5\], got {table}"):
        th.printed_opitz_table(table)
    assert [len(th.printed_opitz_table(known)) > 3 for known in (1, 2, 4, 5)] == [True] * 4
    with pytest.raises(ValueError, match=r"what is one of \['value', 'rank'\], got 'place'"):
        th.printed_opitz_table(1, "place")


def test_labels_that_are_none_are_listed_without_those_that_are():
    data = TWO.assign(label=[0, 1, 5, 7, -1] * 6)
    with pytest.raises(ValueError, match="labels are 1 .faithful. and 0, found -1.0, 5.0, 7.0$"):
        th.expected_accuracy(data, dict(a=1, b=2))
    with pytest.raises(ValueError, match="no domain is given for b; the map has a, c"):
        th.expected_accuracy(TWO, dict(a=1, c=1))
    with pytest.raises(
        ValueError,
        match="leaves a with 0 rows to learn on and 10 to decide on; .* data sets of more than one domain",
    ):
        th.expected_accuracy(TWO, dict(a=1, b=1), "outdomain")
    with pytest.raises(ValueError, match="xdomain leaves a with 0 rows .*of other names, or more rows"):
        th.expected_accuracy(TWO[:10], dict(a=1))
    with pytest.raises(ValueError, match="indata leaves a with 0 rows .*of other names, or more rows"):
        th.expected_accuracy(TWO[:1], dict(a=1), "indata", preset="opitz2024")


def test_a_constant_is_learned_where_all_labels_are_the_same():
    for label in (0, 1):
        decide = th.fit_classifier("stump", np.array([1.0, 2, 3]), np.full(3, label))
        assert decide(np.array([0.0, 9, 9, 9])).tolist() == [label] * 4


def test_a_constant_score_is_standardised_without_an_error():
    decide = th.fit_logistic(np.array([5.0, 5, 5]), np.array([1, 1, 0]))
    assert decide([5.0, 100]).tolist()[0] == 1
    assert th.fit_logistic(np.array([5.0, 5, 5, 6]), np.array([0, 0, 0, 1]), scale=False)([5.0]).tolist() == [
        0
    ]


def test_a_score_beyond_what_was_learned_is_called_like_the_nearest_unless_released():
    x, y = np.array([1.0, 2, 3, 4]), np.array([0, 0, 1, 1])
    assert th.fit_isotonic(x, y)([0, 2.5, 2.6, 9]).tolist() == [0, 0, 1, 1]
    assert th.fit_isotonic(x, y, clip=False)([0, 3, 9]).tolist() == [0, 1, 0]


@pytest.mark.parametrize("label, accuracy", [(1, 0.75), (0, 0.25)])
def test_a_single_class_has_no_balanced_accuracy_and_no_warning(recwarn, label, accuracy):
    rates = th._classification_rates([label] * 4, [1, 1, 0, 1])
    assert np.isnan(rates.balanced_accuracy) and rates.accuracy == accuracy
    assert (rates.always_faithful, rates.always_unfaithful) == (label, 1 - label)
    assert not [str(warning.message) for warning in recwarn]
