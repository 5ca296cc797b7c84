"""FRANK under every way to learn a threshold against the recorded runs, and the printed tables against themselves."""

import numpy as np
import pandas as pd
import pytest

from uetrust.core.settings import mirror
from uetrust.evaluation import thresholds as th
from uetrust.papers.threshold import released as ts

NAME = dict(logistic="logistic", isotonic="isotonic", stump="threshold")
SIDES = dict(cnndm="cnndm", bbc="bbc")


def close(a, b, tol=1e-9):
    np.testing.assert_allclose(np.array(a, float), np.array(b, float), rtol=0, atol=tol)


@pytest.fixture(scope="session")
def table():
    if mirror() is None:
        pytest.skip("UETRUST_MIRROR is not at hand")
    from uetrust.data.loaders import frank

    return frank()


@pytest.fixture(scope="session")
def recorded(oracle):
    return oracle("evaluation.json")["opitz_frank"]


def part(table, split):
    return table if split == "all" else table[table["split"] == split]


def agrees(want, data, mode, classifier):
    "Per data set and mean: AUC, accuracy and kappa."
    t = th.expected_accuracy(data, SIDES, mode, classifier, "opitz2024", repeats=20)
    m = th.ranked(t).loc[list(ts.FRANK_ELEVEN)]
    for measure in ("accuracy", "kappa"):
        w = want[f"{mode}/{NAME[classifier]}/{measure}"]
        for ours, theirs in (("auc", "auc"), (measure, "score")):
            close(
                t.pivot(index="dataset", columns="metric", values=ours).loc[
                    list(SIDES), list(ts.FRANK_ELEVEN)
                ],
                w[theirs],
            )
            close(m[ours], w[f"mean_{theirs}"])


@pytest.mark.parametrize("classifier", th.CLASSIFIERS)
@pytest.mark.parametrize("mode", th.MODES)
@pytest.mark.parametrize("split", ["all", "test"])
def test_the_released_protocol_on_frank(table, recorded, split, mode, classifier):
    agrees(recorded["results"][split]["results"], ts.frank_items(part(table, split)).data, mode, classifier)


@pytest.mark.parametrize("split", ["all", "test"])
def test_metrics_standardised_over_both_sets(table, recorded, split):
    data, names = ts.frank_items(part(table, split)).data, list(ts.FRANK_ELEVEN)
    z = data.assign(**(data[names] - data[names].mean()) / data[names].std(ddof=0))
    for c in th.CLASSIFIERS:
        agrees(recorded["results"][split]["zscored_xdomain"], z, "xdomain", c)


def test_every_recorded_run_is_compared(recorded):
    "`valid` is in test_threshold.py; a split, mode or measure that is recorded but never compared would go unseen."
    assert (
        set(recorded["results"]) == {"all", "valid", "test"} and tuple(recorded["metrics"]) == ts.FRANK_ELEVEN
    )
    for r in recorded["results"].values():
        assert set(r["results"]) == {
            f"{m}/{NAME[c]}/{s}" for m in th.MODES for c in th.CLASSIFIERS for s in ("accuracy", "kappa")
        }
        assert set(r["zscored_xdomain"]) == {
            f"xdomain/{NAME[c]}/{s}" for c in th.CLASSIFIERS for s in ("accuracy", "kappa")
        }


@pytest.mark.parametrize("split", ["all", "valid", "test"])
def test_counts_base_rates_and_dropped_rows_are_the_recorded_ones(table, recorded, split):
    it, r = ts.frank_items(part(table, split)), recorded["results"][split]
    g = it.data.groupby("dataset")["label"]
    assert it.dropped == r["dropped"] and {f"frank_{k}": n for k, n in g.size().items()} == r["n"]
    close([g.mean()[k] for k in SIDES], [r["base_rate"][f"frank_{k}"] for k in SIDES], 1e-12)


def test_the_nine_systems_are_the_two_sets_cut_differently(table):
    two, nine = (ts.frank_items(table, l) for l in ts.LAYOUTS)
    assert nine.data["dataset"].nunique() == 9 and sum(nine.dropped.values()) == sum(two.dropped.values())
    pd.testing.assert_frame_equal(nine.data.assign(dataset=nine.data["dataset"].map(nine.domain)), two.data)


def test_frank_as_quoted(table):
    "Spec: as released, always unfaithful (.665) beats all 11, rho -.09; ten of eleven are constant on CNN/DM (.409)."
    tidy = ts.frank_study(table)
    o = ts.outcome(tidy).set_index(["layout", "preset"]).loc[("domain", "opitz2024")]
    close([o["rho_accuracy"], o["always_unfaithful"], o["majority"]], [-0.09, 0.665, 0.756], 0.0051)
    assert o["below_always_unfaithful"] == o["metrics"] == 11
    cnn = tidy.query("layout=='domain' and preset=='opitz2024' and dataset=='cnndm'")
    close(cnn["accuracy"].sort_values().iloc[:10], [0.4095] * 10, 0.0005)


def test_two_sets_in_two_domains_leave_three_modes_that_are_one(table):
    a, b, c = (
        ts.outcome(ts.frank_study(table, m, "stump")).query("layout=='domain'")
        for m in ("xdomain", "outdomain", "outdata")
    )
    for other in (b, c):
        close(a.drop(columns=ts.CASE), other.drop(columns=ts.CASE), 1e-12)


def test_table_3_has_one_metric_on_the_wrong_side():
    groups, ranks = ts.table3_groups(), th.printed(4, "rank")
    t = ts.moves(groups, ranks)
    assert t.index[~t["holds"]].tolist() == ["SummaCC"] and len(t) == 11 and (groups == "better").sum() == 5
    turned = groups.where(groups.index != "Q2", "worse").where(groups.index != "ANLI", "better")
    assert set(t.index[~ts.moves(turned, ranks)["holds"]]) == {"SummaCC", "Q2", "ANLI"}
    ranks.loc["Xdomain|logistic", "SummaCC"] = 5
    assert ts.moves(groups, ranks)["holds"].all()


def test_the_agreements_of_the_printed_tables_are_the_quoted_ones():
    four = th.printed(4).drop(columns="AVG")
    g = ts.against_auc(four.loc[["AUC"]], four.drop("AUC"))
    close(
        g["rho"],
        [th.auc_agreement(pd.DataFrame(dict(auc=four.loc["AUC"], accuracy=four.loc[k]))) for k in g.index],
        1e-12,
    )
    one = ts.against_auc(th.printed(1).drop("mean"), th.printed(2).drop("mean"))
    assert one.loc["mnbm", ["best_by_auc", "its_rank", "ranks_moved"]].tolist() == [
        "ANLI",
        10,
        9,
    ]  # ranks of the paper: 1 and 10
    assert (g.loc["Xdomain|logistic", "best_by_auc"], g.loc["Xdomain|logistic", "best"]) == ("ANLI", "Q2")


def test_repeated_finds_the_constants_that_the_spec_lists():
    got = {(r.row, r.value, r.times) for r in ts.repeated(th.printed(2).drop("mean")).itertuples()}
    assert got == {
        ("qags-c", 51.9, 3),
        ("qags-x", 51.5, 4),
        ("summeval", 18.4, 2),
        ("frank", 66.8, 3),
        ("mnbm", 89.8, 4),
    }
    assert ts.repeated(th.printed(2).loc[["paws", "begin"]]).empty


def made(scores, labels, **kw):
    return ts.compare(
        pd.DataFrame(dict(dataset=np.repeat(["a", "b"], len(labels) // 2), label=labels, m=scores)),
        dict(a=1, b=2),
        **kw,
    )


def test_silent_is_one_answer_to_everything():
    y = [0, 0, 0, 1] * 5 + [1, 1, 1, 0] * 5
    deaf, clear = (
        ts.silent(made(np.tile(np.array([0, 0, 0, 1.0]) * k, 10), y, classifier=c))
        for k, c in ((0, "stump"), (1, "stump"))
    )
    assert deaf.all() and not clear.any()
    lucky = pd.DataFrame(
        dict(
            accuracy=[0.75, 0.75, 0.25, 0.5],
            kappa=[1 / 3, 0, 0, 0],
            always_faithful=0.75,
            always_unfaithful=0.25,
        )
    )  # 5 of 6 and 1 of 2 are right in 6 of 8
    assert ts.silent(lucky).tolist() == [False, True, True, False]


def test_from_prior_is_the_share_of_the_mix():
    "accuracy - balanced accuracy = (2a-1)(TPR-TNR)/2 on one data set"
    rng = np.random.default_rng(1)
    t = made(rng.random(80), rng.integers(0, 2, 80), classifier="stump").assign(layout="x")
    for _, r in t.iterrows():
        a, acc, bal = r["always_faithful"], r["accuracy"], r["balanced_accuracy"]
        tpr, tnr = np.linalg.solve([[a, 1 - a], [0.5, 0.5]], [acc, bal])
        o = ts.outcome(t[(t.index == r.name)].assign(preset="principled"))["from_prior"].item()
        close(o, (2 * a - 1) * (tpr - tnr) / 2, 1e-12)


def test_auc_scores_is_never_the_auc_of_decisions(table):
    m = (
        ts.means(ts.frank_study(table, "indata", "stump", repeats=4))
        .query("layout=='domain'")
        .set_index(["preset", "metric"])
    )
    a, b = m.loc["principled"], m.loc["opitz2024"]
    close(a["auc_scores"], b["auc_scores"], 0)
    close(b["auc"], b["balanced_accuracy"], 1e-9)
    assert (a["auc_scores"] - b["auc"]).abs().min() > 1e-3


def test_a_repeated_study_is_the_same_study(table):
    a, b = (ts.frank_study(table, "indata", "isotonic", repeats=2) for _ in range(2))
    pd.testing.assert_frame_equal(a, b)
    assert not ts.frank_study(table, "indata", "isotonic", repeats=2, seed=1)["accuracy"].equals(
        a["accuracy"]
    )


def test_gathered_reads_what_was_written(tmp_path):
    t = made([0, 1, 0, 1], [0, 1, 0, 1], mode="outdata", classifier="stump").assign(layout="domain")
    for mode in ("outdata", "xdomain"):
        t.assign(mode=mode).to_csv(tmp_path / ts.run_file(mode, "stump"), index=False)
    found, missing = ts.gathered(tmp_path)
    assert list(dict.fromkeys(found["mode"])) == ["xdomain", "outdata"] and len(missing) == 13
    close(found[found["mode"] == "outdata"][list(th.FIELDS)], t[list(th.FIELDS)], 0)


@pytest.mark.parametrize("mode,classifier", [("outdata", "isotonic"), ("indata", "stump")])
def test_the_study_is_expected_accuracy_in_both_layouts_and_presets(table, mode, classifier):
    t = ts.frank_study(table, mode, classifier, repeats=2, seed=5)
    for layout in ts.LAYOUTS:
        data, domain, _ = ts.frank_items(table, layout)
        for p in th.PRESETS:
            got = t[(t["layout"] == layout) & (t["preset"] == p)]
            want = th.expected_accuracy(data, domain, mode, classifier, p, repeats=2, seed=5)
            pd.testing.assert_frame_equal(got[want.columns].reset_index(drop=True), want)
    assert set(map(tuple, t[["mode", "classifier"]].drop_duplicates().to_numpy())) == {(mode, classifier)}
