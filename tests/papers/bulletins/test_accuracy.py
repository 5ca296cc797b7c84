"""AUC and expected accuracy: delete-one values equal counting again, and the paper's point holds on made-up
generators."""

import numpy as np
import pandas as pd
import pytest
from scipy.stats import mannwhitneyu, norm
from sklearn.isotonic import IsotonicRegression

from uetrust.core.settings import mirror
from uetrust.data.bulletins import bulletins
from uetrust.data.checker import ERROR_TYPES, check_summaries
from uetrust.evaluation.resample import jackknife_se
from uetrust.evaluation.thresholds import CLASSIFIERS, expected_accuracy
from uetrust.papers.bulletins import accuracy as st


def texts(g, labels, **scores):
    return pd.DataFrame(
        dict(dataset=g, document=[f"d{i}" for i in range(len(labels))], label=labels) | scores
    )


@pytest.fixture(scope="module")
def shifted():
    "Two generators, 120 documents: a perfect score, one shifted by 10, a good, a tied and a random one"
    rng = np.random.default_rng(0)

    def one(g, by):
        y = rng.permutation(np.repeat([0, 1], 60))
        good = 1.2 * y + rng.normal(size=120)
        return texts(
            g,
            y,
            perfect=y + rng.random(120) * 0.2,
            moved=good + by,
            good=good,
            tied=(good * 2).round(),
            worthless=rng.random(120),
        )

    return pd.concat([one("a", 0), one("b", 10)], ignore_index=True)


DOMAIN = dict(a="A", b="B")


# Label
def test_the_label_is_what_the_checker_finds():
    b = bulletins("test", 30)
    leads = [s.split(". ")[0] + "." for s in b["source"]]
    assert (st.error_free(check_summaries(leads, b)) == 1).all()
    wrong = check_summaries([t.replace(t.split()[-1], "yesterday.") for t in leads], b)
    for frame in (check_summaries(leads, b), wrong):
        want = [
            (0 if any(r[e] > 0 for e in ERROR_TYPES) or r["unparsed"] > 0 else 1) for _, r in frame.iterrows()
        ]
        assert st.error_free(frame).tolist() == want
    assert 0 in set(st.error_free(wrong))


@pytest.mark.parametrize("error", ERROR_TYPES)
def test_one_word_with_one_error_of_any_type_is_enough(error):
    t = pd.DataFrame(dict(words=[10] * 3, unparsed=0.0) | dict.fromkeys(ERROR_TYPES, 0.0))
    t.loc[1, error] = 0.1
    t.loc[2, "unparsed"] = 0.1
    assert st.error_free(t).tolist() == [1, 0, 0]


def test_a_text_without_words_has_no_label():
    t = check_summaries(["", "Nothing here."], bulletins("test", 2))
    assert np.isnan(st.error_free(t)[0]) and st.error_free(t)[1] == 0


# Where from
@pytest.mark.parametrize("classifier", CLASSIFIERS)
def test_outdomain_is_that_of_the_threshold_page(shifted, classifier):
    data = pd.concat(
        [shifted, shifted[shifted["dataset"] == "a"].assign(dataset="c", good=lambda d: d["good"] * 2 - 1)],
        ignore_index=True,
    )
    domain = dict(a="A", b="B", c="C")
    want = expected_accuracy(data.drop(columns="document"), domain, "outdomain", classifier).set_index(
        ["dataset", "metric"]
    )
    p = st.labelled_datasets(data)
    for g, h in st._hit_rate(p, domain, "outdomain", classifier).items():
        b = st._balanced_share_right(h, p[g])
        for m in h:
            assert (h[m].mean(), b.value[m]) == pytest.approx(
                (want.at[(g, m), "accuracy"], want.at[(g, m), "balanced_accuracy"]), abs=1 / 119
            )


def test_a_perfect_score_is_always_right(shifted):
    s = st.accuracy_study(st.labelled_datasets(shifted), DOMAIN, repeats=3)
    assert (s.scores.query("score=='perfect'")[["auc", "hindsight"]] == 1).all(axis=None)
    d = s.decisions.query("score=='perfect'")
    assert len(d) == 3 * 2 * 3 * 2 and (d[["accuracy", "balanced_accuracy"]] == 1).all(axis=None)


def test_a_score_that_moves_between_generators_keeps_its_auc_and_loses_its_accuracy(shifted):
    "The point of Opitz 2024"
    s = st.accuracy_study(st.labelled_datasets(shifted), DOMAIN, repeats=3)
    a = s.scores.set_index(["score", "dataset"])
    np.testing.assert_allclose(a.loc["moved", "auc"], a.loc["good", "auc"])
    d = s.decisions.set_index(["place", "weights", "score", "dataset", "classifier"])["accuracy"]
    for w in st.CLASS_WEIGHTS:
        for c in CLASSIFIERS:
            for g in "ab":
                assert d["outdomain", w, "good", g, c] > 0.65 and d["outdomain", w, "moved", g, c] == 0.5
                assert d["halves", w, "moved", g, c] == pytest.approx(d["halves", w, "good", g, c], abs=0.02)


def test_the_score_that_moves_is_ahead_by_auc_and_behind_by_decisions(shifted):
    fair = shifted.assign(fair=0.9 * shifted["label"] + np.random.default_rng(1).normal(size=240))
    t = st.score_pairs_of_study(
        st.labelled_datasets(fair[["dataset", "document", "label", "moved", "fair", "good"]]), DOMAIN
    ).set_index(["first", "second"])
    assert (
        t.at[("moved", "fair"), "turned"]
        and not t.at[("good", "fair"), "turned"]
        and t.at[("moved", "fair"), "accuracy"] < -0.1
    )
    home = st.score_pairs_of_study(
        st.labelled_datasets(fair[["dataset", "document", "label", "moved", "fair"]]),
        DOMAIN,
        place="halves",
        repeats=3,
    ).set_index(["first", "second"])
    assert not home.at[("moved", "fair"), "turned"]


def test_halves_never_meet_their_own_documents(shifted, monkeypatch):
    seen, learn = [], st.learn_thresholds
    monkeypatch.setattr(
        st,
        "learn_thresholds",
        lambda x, labels, **options: (seen.append(len(labels)), learn(x, labels, **options))[1],
    )
    twins = shifted[shifted["dataset"] == "a"]
    p = st.labelled_datasets(pd.concat([twins, twins], ignore_index=True))  # every document twice
    h = st._hit_rate(p, DOMAIN, "halves", "stump", repeats=4)["a"]
    assert (
        seen == [120] * 8
        and h.min().min() >= 0
        and h.max().max() <= 1
        and (h[:120].to_numpy() == h[120:].to_numpy()).all()
    )


def test_texts_that_occur_twice_are_neither_learned_from_nor_averaged(shifted):
    keep = shifted["dataset"].eq("a") & (
        shifted["label"].eq(1) | (shifted.index % 3 == 0)
    )  # a third domain with another mix of classes
    three = pd.concat(
        [shifted, shifted[keep].assign(dataset="c", good=lambda d: d["good"] - 1)], ignore_index=True
    )
    copy = shifted[shifted["dataset"] == "b"].assign(dataset="copy")
    p, domain = (
        st.labelled_datasets(pd.concat([three, copy], ignore_index=True)),
        DOMAIN | dict(c="C", copy="B"),
    )
    base, more = (
        st.accuracy_study(st.labelled_datasets(three), domain, repeats=2),
        st.accuracy_study(p, domain, ["copy"], repeats=2),
    )
    for k in ("scores", "decisions"):
        new = getattr(more, k)
        pd.testing.assert_frame_equal(
            getattr(base, k), new[new["dataset"] != "copy"].reset_index(drop=True), check_dtype=False
        )
        one, other = (
            new[new["dataset"] == g].drop(columns="dataset").reset_index(drop=True) for g in ("copy", "b")
        )
        pd.testing.assert_frame_equal(one, other)
    assert "the same texts" in st.dataset_base_rates(p, domain, ["copy"])["note"].iloc[3]


def test_a_score_of_one_network_has_no_outdomain(shifted):
    data = shifted.assign(own=shifted["good"].where(shifted["dataset"] == "a"))
    s = st.accuracy_study(st.labelled_datasets(data), DOMAIN, repeats=2)
    assert set(s.decisions.query("score=='own'")["place"]) == {"halves"} and set(
        s.scores.query("score=='own'")["dataset"]
    ) == {"a"}


# Numbers and their errors
def test_auc_is_that_of_mann_and_whitney(shifted):
    for p in st.labelled_datasets(shifted).values():
        e = st._auc_estimates(p)
        for c, x in p.scores.items():
            labels, v = p.label == 1, x.to_numpy()
            assert e.value[c] == pytest.approx(
                mannwhitneyu(v[labels], v[~labels]).statistic / (labels.sum() * (~labels).sum())
            )
            for i in (0, 7, 119):
                k = np.delete(np.arange(120), np.flatnonzero(p.document == e.left.index[i]))
                assert e.left[c].iloc[i] == pytest.approx(
                    mannwhitneyu(v[k][labels[k]], v[k][~labels[k]]).statistic
                    / (labels[k].sum() * (~labels[k]).sum())
                )


def test_documents_leave_all_texts_of_all_generators_at_once():
    rng = np.random.default_rng(2)
    x = pd.DataFrame(dict(m=rng.random(9)))
    doc = np.array(list("aabbccdde"))
    two = [st.share_right(x, doc), st.share_right(x[:6] * 2, doc[:6])]
    e = st.mean_estimate(two)
    for d in "abcde":
        assert e.left.at[d, "m"] == pytest.approx(
            (x["m"][doc != d].mean() + 2 * x["m"][:6][doc[:6] != d].mean()) / 2
        )
    assert e.value["m"] == pytest.approx(x["m"].mean() / 2 + x["m"][:6].mean())


def test_the_interval_of_auc_covers_and_that_of_a_share_is_nearly_wilsons():
    rng = np.random.default_rng(4)
    hit = pd.DataFrame(rng.random((200, 300)) < 0.8).astype(float)
    b = st._estimate_intervals(st.share_right(hit, np.arange(200)))
    assert 0.92 < ((b["lo"] < 0.8) & (0.8 < b["hi"])).mean() <= 0.98
    se = np.sqrt(b["value"] * (1 - b["value"]) / 199)
    np.testing.assert_allclose(b["se"], se)
    labels = np.repeat([0, 1], 60)
    a = st._estimate_intervals(
        st._auc_estimates(
            st.LabelledDataset(
                labels, np.arange(120), pd.DataFrame(labels[:, None] + rng.normal(size=(120, 300))), {}, 0
            )
        )
    )
    assert 0.91 < ((a["lo"] < 0.76025) & (0.76025 < a["hi"])).mean() <= 0.985  # P(N(1,2)>0)


def test_too_few_of_a_class_leave_no_interval_and_no_clear_pair():
    rng = np.random.default_rng(0)
    labels = np.r_[np.ones(14), np.zeros(26)]
    d = pd.concat(
        [texts(g, labels, a=labels + rng.normal(size=40), b=rng.random(40)) for g in "ab"], ignore_index=True
    )
    s = st.accuracy_study(st.labelled_datasets(d), DOMAIN, repeats=2)
    assert (
        s.scores["auc"].notna().all()
        and s.scores[["auc_lo", "auc_hi"]].isna().all(axis=None)
        and (s.orders["clear"] == 0).all()
    )
    d.loc[d["document"] == "d20", "label"] = 1
    assert st.accuracy_study(st.labelled_datasets(d), DOMAIN, repeats=2).scores["auc_lo"].notna().all()


def test_one_class_has_accuracy_but_no_auc_and_stays_out_of_the_mean(shifted):
    data = pd.concat(
        [shifted, shifted[shifted["dataset"] == "a"].assign(dataset="c", label=1.0)], ignore_index=True
    )
    p, domain = st.labelled_datasets(data), DOMAIN | dict(c="C")
    s = st.accuracy_study(p, domain, repeats=2)
    assert s.scores.query("dataset=='c'")["auc"].isna().all() and st.datasets_in_mean(p) == ["a", "b"]
    assert s.decisions.query("dataset=='c' and place=='halves'")["accuracy"].eq(1).all()
    assert "one class only" in st.dataset_base_rates(p, domain)["note"].iloc[2]


# Pairs
def test_pairs_differ_as_their_numbers_do(shifted):
    p = st.labelled_datasets(shifted)
    t = st.score_pairs_of_study(p, DOMAIN, "a", classifier="stump")
    auc, acc = (
        st._auc_estimates(p["a"]),
        st.share_right(st._hit_rate(p, DOMAIN, "outdomain", "stump")["a"], p["a"].document),
    )
    assert len(t) == 10 and (t["auc"] >= 0).all()
    for r in t.itertuples():
        z = [
            abs(e.value[r.first] - e.value[r.second])
            / max(jackknife_se((e.left[r.first] - e.left[r.second]).to_numpy()), 1e-12)
            for e in (auc, acc)
        ]
        assert r.p == pytest.approx(max(2 * norm.sf(z)))
        assert (r.auc, r.accuracy) == pytest.approx(
            (auc.value[r.first] - auc.value[r.second], acc.value[r.first] - acc.value[r.second])
        )
        assert r.turned == (r.auc > 1e-12 and r.accuracy < -1e-12) and r.q >= r.p
    c = st.reversal_counts(t)
    assert (
        c["tied"] == ((t["auc"] == 0) | (t["accuracy"] == 0)).sum()
        and c["clear_turned"] <= c["clear"] == (t["q"] < 0.05).sum()
    )


def test_two_scores_without_worth_differ_by_chance_at_the_nominal_rate():
    rng = np.random.default_rng(5)
    labels = np.repeat([0, 1], 75)
    e = st._auc_estimates(
        st.LabelledDataset(labels, np.arange(150), pd.DataFrame(rng.normal(size=(150, 200))), {}, 0)
    )
    t = st.score_pairs(e, e)  # both differences are one, so p is its p
    i, j = (t[["first", "second"]].astype(int).agg(k, axis=1) for k in ("min", "max"))
    lone = t[(i % 2 == 0) & (j == i + 1)]
    assert len(lone) == 100 and 0.01 <= (lone["p"] < 0.05).mean() <= 0.11


# Missing
def test_scores_with_gaps_are_left_out_by_name_and_counted(shifted):
    data = shifted.copy()
    data.loc[[3, 9], "good"] = np.nan
    data.loc[5, "tied"] = np.inf
    data.loc[[130, 131], "label"] = np.nan
    p = st.labelled_datasets(data)
    assert (
        p["a"].why == dict(good="undefined for 2 of 120 texts", tied="infinite for some text")
        and p["b"].why == {}
    )
    r = st.dataset_base_rates(p, DOMAIN).set_index("dataset")
    assert (
        r["unlabelled"].tolist() == [0, 2]
        and r["texts"].tolist() == [120, 118]
        and r["left_out"].tolist() == [2, 0]
    )
    s = st.accuracy_study(p, DOMAIN, repeats=2)
    gone = s.scores[s.scores["missing"] != ""]
    assert (
        set(zip(gone["dataset"], gone["score"])) == {("a", "good"), ("a", "tied")}
        and gone["auc"].isna().all()
    )
    assert "good" not in set(s.decisions.query("dataset=='a' or dataset=='mean'")["score"])


def test_a_data_set_without_any_label_is_an_error(shifted):
    with pytest.raises(ValueError, match="b has no text with a label among its 120"):
        st.labelled_datasets(shifted.assign(label=shifted["label"].where(shifted["dataset"] == "a")))


# Reproducible
def test_a_study_depends_on_its_seed_and_on_no_order_of_rows(shifted):
    a, b, c = (
        st.accuracy_study(st.labelled_datasets(d), DOMAIN, repeats=2, seed=k)
        for d, k in (
            (shifted, 1),
            (shifted.sample(frac=1, random_state=0).sort_values("dataset", kind="stable"), 1),
            (shifted, 2),
        )
    )
    for x, labels in zip(a, b):
        pd.testing.assert_frame_equal(x, labels)
    assert not a.decisions.equals(c.decisions) and a.scores.equals(c.scores)


# FRANK
@pytest.mark.parametrize("classifier", CLASSIFIERS)
def test_frank_is_that_of_the_threshold_study(classifier):
    if mirror() is None:
        pytest.skip("UETRUST_MIRROR is not at hand")
    from uetrust.data.loaders import frank
    from uetrust.papers.threshold.released import FRANK_THRESHOLD_METRICS, frank_items

    table = frank()
    rows = st.frank_rows(table)
    p, sides = st.labelled_datasets(rows), dict(cnndm="cnndm", bbc="bbc")
    want = expected_accuracy(frank_items(table).data, sides, "outdomain", classifier).set_index(
        ["dataset", "metric"]
    )
    assert st.frank_incomplete(table) == dict(cnndm=68, bbc=19) and {
        g: len(x.label) for g, x in p.items()
    } == dict(cnndm=1182, bbc=977)
    for g, h in st._hit_rate(p, sides, "outdomain", classifier).items():
        e = st._auc_estimates(p[g])
        for m in FRANK_THRESHOLD_METRICS:
            half = (classifier, g, m) == (
                "isotonic",
                "bbc",
                "Bleu",
            )  # a step of exactly one half, which the rounding of scikit-learn puts above it
            assert (e.value[m], h[m].mean()) == pytest.approx(
                (want.at[(g, m), "auc"], above_half(p, m) if half else want.at[(g, m), "accuracy"]), abs=2e-3
            )


def above_half(p, m):  # Accuracy on BBC of isotonic regression on CNN/DM, a billionth above one half
    f = IsotonicRegression(out_of_bounds="clip").fit(p["cnndm"].scores[m], p["cnndm"].label)
    return ((f.predict(p["bbc"].scores[m]) > 0.5 + 1e-9) == (p["bbc"].label == 1)).mean()
