"""Threshold study: FRANK against recorded runs in every mode, and consistency of the printed tables."""

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest

from uetrust.core.settings import mirror
from uetrust.evaluation import thresholds as th
from uetrust.papers.threshold import released as ts

NAME = dict(logistic="logistic", isotonic="isotonic", stump="threshold")
SIDES = dict(cnndm="cnndm", bbc="bbc")


def close(found, want, tol=1e-9):
    np.testing.assert_allclose(np.array(found, float), np.array(want, float), rtol=0, atol=tol)


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
    table = th.expected_accuracy(data, SIDES, mode, classifier, "opitz2024", repeats=20)
    means_ = th.metrics_by_accuracy(table).loc[list(ts.FRANK_THRESHOLD_METRICS)]
    for measure in ("accuracy", "kappa"):
        expected = want[f"{mode}/{NAME[classifier]}/{measure}"]
        for ours, theirs in (("auc", "auc"), (measure, "score")):
            close(
                table.pivot(index="dataset", columns="metric", values=ours).loc[
                    list(SIDES), list(ts.FRANK_THRESHOLD_METRICS)
                ],
                expected[theirs],
            )
            close(means_[ours], expected[f"mean_{theirs}"])


@pytest.mark.parametrize("classifier", th.CLASSIFIERS)
@pytest.mark.parametrize("mode", th.LEARNING_MODES)
@pytest.mark.parametrize("split", ["all", "test"])
def test_the_released_protocol_on_frank(table, recorded, split, mode, classifier):
    agrees(recorded["results"][split]["results"], ts.frank_items(part(table, split)).data, mode, classifier)


@pytest.mark.parametrize("split", ["all", "test"])
def test_metrics_standardised_over_both_sets(table, recorded, split):
    data, names = ts.frank_items(part(table, split)).data, list(ts.FRANK_THRESHOLD_METRICS)
    standardised = data.assign(**(data[names] - data[names].mean()) / data[names].std(ddof=0))
    for classifier in th.CLASSIFIERS:
        agrees(recorded["results"][split]["zscored_xdomain"], standardised, "xdomain", classifier)


def test_every_recorded_run_is_compared(recorded):
    "`valid` is in test_thresholds.py; every other recorded split, mode and measure is compared here."
    assert (
        set(recorded["results"]) == {"all", "valid", "test"}
        and tuple(recorded["metrics"]) == ts.FRANK_THRESHOLD_METRICS
    )
    for run in recorded["results"].values():
        assert set(run["results"]) == {
            f"{mode}/{NAME[classifier]}/{split}"
            for mode in th.LEARNING_MODES
            for classifier in th.CLASSIFIERS
            for split in ("accuracy", "kappa")
        }
        assert set(run["zscored_xdomain"]) == {
            f"xdomain/{NAME[classifier]}/{split}"
            for classifier in th.CLASSIFIERS
            for split in ("accuracy", "kappa")
        }


@pytest.mark.parametrize("split", ["all", "valid", "test"])
def test_counts_base_rates_and_dropped_rows_are_the_recorded_ones(table, recorded, split):
    items, record = ts.frank_items(part(table, split)), recorded["results"][split]
    group = items.data.groupby("dataset")["label"]
    assert (
        items.dropped == record["dropped"]
        and {f"frank_{k}": n for k, n in group.size().items()} == record["n"]
    )
    close([group.mean()[k] for k in SIDES], [record["base_rate"][f"frank_{k}"] for k in SIDES], 1e-12)


def test_the_nine_systems_are_the_two_sets_cut_differently(table):
    two, nine = (ts.frank_items(table, layout) for layout in ts.FRANK_LAYOUTS)
    assert nine.data["dataset"].nunique() == 9 and sum(nine.dropped.values()) == sum(two.dropped.values())
    pd.testing.assert_frame_equal(nine.data.assign(dataset=nine.data["dataset"].map(nine.domain)), two.data)


def test_frank_as_quoted(table):
    "As released, always unfaithful (.665) beats all 11, rho -.09; ten of eleven are constant on CNN/DM."
    tidy = ts.frank_study(table)
    found = ts.auc_correlations(tidy).set_index(["layout", "preset"]).loc[("domain", "opitz2024")]
    close(
        [found["rho_accuracy"], found["always_unfaithful"], found["majority"]], [-0.09, 0.665, 0.756], 0.0051
    )
    assert found["below_always_unfaithful"] == found["metrics"] == 11
    cnn = tidy.query("layout=='domain' and preset=='opitz2024' and dataset=='cnndm'")
    close(cnn["accuracy"].sort_values().iloc[:10], [0.4095] * 10, 0.0005)


def test_two_sets_in_two_domains_leave_three_modes_that_are_one(table):
    first, second, third = (
        ts.auc_correlations(ts.frank_study(table, mode, "stump")).query("layout=='domain'")
        for mode in ("xdomain", "outdomain", "outdata")
    )
    for other in (second, third):
        close(first.drop(columns=ts.CASE_COLUMNS), other.drop(columns=ts.CASE_COLUMNS), 1e-12)


def test_table_3_has_one_metric_on_the_wrong_side():
    groups, ranks = ts.table3_groups(), th.printed_opitz_table(4, "rank")
    table = ts.rank_changes(groups, ranks)
    assert (
        table.index[~table["holds"]].tolist() == ["SummaCC"]
        and len(table) == 11
        and (groups == "better").sum() == 5
    )
    turned = groups.where(groups.index != "Q2", "worse").where(groups.index != "ANLI", "better")
    assert set(table.index[~ts.rank_changes(turned, ranks)["holds"]]) == {"SummaCC", "Q2", "ANLI"}
    ranks.loc["Xdomain|logistic", "SummaCC"] = 5
    assert ts.rank_changes(groups, ranks)["holds"].all()


def test_the_agreements_of_the_printed_tables_are_the_quoted_ones():
    four = th.printed_opitz_table(4).drop(columns="AVG")
    found = ts.rankings_against_auc(four.loc[["AUC"]], four.drop("AUC"))
    close(
        found["rho"],
        [
            th.auc_agreement(pd.DataFrame(dict(auc=four.loc["AUC"], accuracy=four.loc[k])))
            for k in found.index
        ],
        1e-12,
    )
    one = ts.rankings_against_auc(
        th.printed_opitz_table(1).drop("mean"), th.printed_opitz_table(2).drop("mean")
    )
    assert one.loc["mnbm", ["best_by_auc", "its_rank", "ranks_moved"]].tolist() == [
        "ANLI",
        10,
        9,
    ]  # ranks of the paper: 1 and 10
    assert (found.loc["Xdomain|logistic", "best_by_auc"], found.loc["Xdomain|logistic", "best"]) == (
        "ANLI",
        "Q2",
    )


def test_repeated_finds_the_constants_that_the_spec_lists():
    got = {
        (found.row, found.value, found.times)
        for found in ts.shared_values(th.printed_opitz_table(2).drop("mean")).itertuples()
    }
    assert got == {
        ("qags-c", 51.9, 3),
        ("qags-x", 51.5, 4),
        ("summeval", 18.4, 2),
        ("frank", 66.8, 3),
        ("mnbm", 89.8, 4),
    }
    assert ts.shared_values(th.printed_opitz_table(2).loc[["paws", "begin"]]).empty


def made(scores, labels, **kw):
    return ts.compare_presets(
        pd.DataFrame(dict(dataset=np.repeat(["a", "b"], len(labels) // 2), label=labels, m=scores)),
        dict(a=1, b=2),
        **kw,
    )


def test_silent_is_one_answer_to_everything():
    y = [0, 0, 0, 1] * 5 + [1, 1, 1, 0] * 5
    deaf, clear = (
        ts.is_constant(made(np.tile(np.array([0, 0, 0, 1.0]) * k, 10), y, classifier=case))
        for k, case in ((0, "stump"), (1, "stump"))
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
    assert ts.is_constant(lucky).tolist() == [False, True, True, False]


def test_from_prior_is_the_share_of_the_mix():
    "accuracy - balanced accuracy = (2a-1)(TPR-TNR)/2 on one data set"
    rng = np.random.default_rng(1)
    results = made(rng.random(80), rng.integers(0, 2, 80), classifier="stump").assign(layout="x")
    for _, row in results.iterrows():
        share, acc, bal = row["always_faithful"], row["accuracy"], row["balanced_accuracy"]
        tpr, tnr = np.linalg.solve([[share, 1 - share], [0.5, 0.5]], [acc, bal])
        from_prior = ts.auc_correlations(results[(results.index == row.name)].assign(preset="principled"))[
            "from_prior"
        ].item()
        close(from_prior, (2 * share - 1) * (tpr - tnr) / 2, 1e-12)


def test_auc_scores_is_never_the_auc_of_decisions(table):
    means_ = (
        ts.case_means(ts.frank_study(table, "indata", "stump", repeats=4))
        .query("layout=='domain'")
        .set_index(["preset", "metric"])
    )
    first, second = means_.loc["principled"], means_.loc["opitz2024"]
    close(first["auc_scores"], second["auc_scores"], 0)
    close(second["auc"], second["balanced_accuracy"], 1e-9)
    assert (first["auc_scores"] - second["auc"]).abs().min() > 1e-3


def test_a_repeated_study_is_the_same_study(table):
    first, second = (ts.frank_study(table, "indata", "isotonic", repeats=2) for _ in range(2))
    pd.testing.assert_frame_equal(first, second)
    assert not ts.frank_study(table, "indata", "isotonic", repeats=2, seed=1)["accuracy"].equals(
        first["accuracy"]
    )


def test_gathered_reads_what_was_written(tmp_path):
    table = made([0, 1, 0, 1], [0, 1, 0, 1], mode="outdata", classifier="stump").assign(layout="domain")
    for mode in ("outdata", "xdomain"):
        table.assign(mode=mode).to_csv(tmp_path / ts.threshold_file(mode, "stump"), index=False)
    found, missing = ts.read_combinations(tmp_path)
    assert list(dict.fromkeys(found["mode"])) == ["xdomain", "outdata"] and len(missing) == 13
    close(found[found["mode"] == "outdata"][list(th.ACCURACY_FIELDS)], table[list(th.ACCURACY_FIELDS)], 0)


@pytest.mark.parametrize("mode,classifier", [("outdata", "isotonic"), ("indata", "stump")])
def test_the_study_is_expected_accuracy_in_both_layouts_and_presets(table, mode, classifier):
    of_layout = ts.frank_study(table, mode, classifier, repeats=2, seed=5)
    for layout in ts.FRANK_LAYOUTS:
        data, domain, _ = ts.frank_items(table, layout)
        for preset in th.THRESHOLD_PRESETS:
            got = of_layout[(of_layout["layout"] == layout) & (of_layout["preset"] == preset)]
            want = th.expected_accuracy(data, domain, mode, classifier, preset, repeats=2, seed=5)
            pd.testing.assert_frame_equal(got[want.columns].reset_index(drop=True), want)
    assert set(map(tuple, of_layout[["mode", "classifier"]].drop_duplicates().to_numpy())) == {
        (mode, classifier)
    }


# Figures
def test_a_histogram_of_a_class_holds_the_texts_of_that_class_alone():
    "The metric a is 1 for what is faithful and 0 for the rest; b is 3 for one unfaithful text and else 1."
    data = pd.DataFrame(dict(dataset="x", label=[1, 1, 0, 0, 0], b=[1.0, 1, 1, 1, 3], a=[1.0, 1, 0, 0, 0]))
    found = ts.class_histograms(data, bins=4).set_index(["metric", "quality"])
    assert list(dict.fromkeys(found.index)) == [
        ("a", "faithful"),
        ("a", "unfaithful"),
        ("b", "faithful"),
        ("b", "unfaithful"),
    ]
    close(found.loc[("a", "faithful"), "share"], [0, 0, 0, 1])
    close(found.loc[("a", "unfaithful"), "share"], [1, 0, 0, 0])
    close(found.loc[("b", "faithful"), "share"], [1, 0, 0, 0])
    close(found.loc[("b", "unfaithful"), "share"], [2 / 3, 0, 0, 1 / 3])
    close(found.loc[("b", "faithful"), "to"], [0.25, 0.5, 0.75, 1])


def test_a_missing_correlation_is_grey_and_colours_reach_from_minus_1_to_1():
    columns = pd.MultiIndex.from_product([ts.FRANK_LAYOUTS, th.THRESHOLD_PRESETS, ts.DECISION_MEASURES])
    grid = pd.DataFrame(0.5, pd.MultiIndex.from_tuples([("xdomain", "stump"), ("indata", "stump")]), columns)
    grid.iloc[0, 0], grid.iloc[1, 2] = np.nan, -0.004
    ax = ts.plot_rho(grid, "FRANK")
    (image,) = (found for found in ax.collections if found.get_array() is not None)
    assert image.get_clim() == (-1, 1)
    assert np.ma.getmaskarray(image.get_array()).ravel().tolist() == [True] + [False] * 23
    assert [label.get_text() for label in ax.get_yticklabels()] == ["xdomain, stump", "indata, stump"]
    shown = [text.get_text() for text in ax.texts]
    assert shown.count("0.50") == 22 and shown.count("0.00") == 1
    assert shown[23:] == [
        "by domain, corrected",
        "by domain, released",
        "by system, corrected",
        "by system, released",
    ]
    plt.close(ax.figure)


def test_a_panel_shows_every_metric_with_its_auc_and_the_accuracy_of_constants():
    about = dict(always_unfaithful=0.6, always_faithful=0.4, majority=0.7)
    means_ = pd.DataFrame(
        [
            dict(layout=layout, preset=preset, metric=metric, auc_scores=auc, accuracy=accuracy) | about
            for layout in ("domain", "mine")
            for preset, shift in (("principled", 0), ("opitz2024", 0.05))
            for metric, auc, accuracy in (("good", 0.9, 0.8 + shift), ("bad", 0.5, 0.55 + shift))
        ]
    )
    figure = ts.plot_threshold(means_, "study")
    assert [ax.get_title() for ax in figure.axes] == ["data sets by domain", "mine"]
    for ax in figure.axes:
        assert [label.get_text() for label in ax.get_yticklabels()] == ["bad", "good"]
        assert {line.get_label(): line.get_xdata()[0] for line in ax.lines} == {
            "always unfaithful": 0.6,
            "always faithful": 0.4,
            "majority class of each set": 0.7,
        }
        points = {found.get_label(): found.get_offsets() for found in ax.collections}
        close(points["AUC"], [[0.5, 0], [0.9, 1]])
        close(points["accuracy, corrected protocol"], [[0.8, 1], [0.55, 0]])
        close(points["accuracy, released code"], [[0.85, 1], [0.6, 0]])
    plt.close(figure)
