"""Correlation with human judgement equals recorded outputs of other implementations."""

import json
from functools import partial
from itertools import combinations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy import stats

from tests.helpers.human_correlations import LEVEL, close
from uetrust.core.settings import mirror
from uetrust.data.loaders import undo_sort
from uetrust.evaluation import correlations as meta
from uetrust.evaluation import significance as rt

COEF = ("pearson", "spearman", "kendall")
UNITS = dict(systems="systems", inputs="documents", both="both")


# Levels
@pytest.mark.parametrize("coef", COEF)
@pytest.mark.parametrize("level", LEVEL)
def test_levels_are_those_of_nlpstats(nlp, xyz, level, coef):
    holes = [m.copy() for m in xyz]
    for m in holes:
        m[tuple(np.transpose(nlp["inputs"]["nan_cells"]))] = np.nan
    f = meta.CORRELATION_LEVELS[LEVEL[level]]
    for (x, y, z), kind in ((xyz, "full"), (holes, "nan")):
        close(
            [f(x, z, coef).value, f(y, z, coef).value],
            list(nlp["correlate"][f"{level}/{coef}/{kind}"].values()),
            1e-12,
        )


@pytest.mark.parametrize("by,level", [("none", "pooled"), ("sys", "per_system"), ("item", "per_document")])
def test_averages_are_those_of_mt_metrics_eval(mt, xyz, by, level):
    x, _, z = xyz
    gold = z.copy().ravel()
    gold[[3, 40]] = np.nan
    for coef in ("pearson", "spearman"):
        for g, kind in ((z, "full"), (gold.reshape(z.shape), "none_filtered")):
            want, got = mt[f"{coef.title()}/{by}"][kind], meta.CORRELATION_LEVELS[level](x, g, coef)
            close(got.value, want[0], 1e-12)
            assert got.groups == want[2]
    for v in ("b", "23", "acc23"):
        for eps in (0.0, 0.3):
            coef = partial(
                meta._kendall_variant, variant="acc_23" if v == "acc23" else "tau_" + v, epsilon=eps
            )
            close(
                meta.CORRELATION_LEVELS[level](x, z, coef).value,
                mt[f"KendallVariants/{by}/{v}/eps{eps}"],
                1e-12,
            )
    close(
        meta.CORRELATION_LEVELS[level](x, z, partial(meta._kendall_variant, variant="tau_c")).value,
        mt[f"KendallVariants/{by}/c"],
        1e-12,
    )


def test_a_tie_of_the_metric_is_discordant_for_wmt():
    assert meta._kendall_like([[1], [1], [2]], [[0], [9], [9]], 5) == (0.0, 2)


def test_the_kendall_like_count_is_wmts(mt, xyz):
    value, _, pairs = mt["KendallLike/item/thresh1.0"]
    got = meta._kendall_like(xyz[0], xyz[2], 1.0)
    close(got.value, value, 1e-12)
    assert got.pairs == pairs


def test_realigned_columns_give_the_recorded_levels_of_ice(oracle, ice):
    want = oracle("evaluation.json")["ice_unieval_levels"]["results"]
    tables = {k: ice[k] for k in ("ice_uniform", "ice_stratified", "unieval_as_stored")}
    tables["unieval_realigned"] = {
        d: undo_sort(m.T, ice["first_summary_index"]).T for d, m in ice["unieval_as_stored"].items()
    }
    for name, t in tables.items():
        for dim, m in t.items():
            for at, level in (("sample", "pooled"), ("summary", "per_document"), ("system", "system")):
                got = (
                    [meta.CORRELATION_LEVELS[level](m, ice["human"][dim], c) for c in COEF]
                    if level != "system"
                    else by_plain_means(m, ice["human"][dim])
                )
                tol = (
                    [1e-6, 4e-4, 4e-4] if name.startswith("unieval") else [1e-6] * 3
                )  # nine stored decimals tie a few UniEval scores that the release distinguishes
                assert (
                    abs(np.array([g.value for g in got]) - [want[name][at][dim][c] for c in COEF]) < tol
                ).all(), (name, dim, at)
                if level == "per_document":
                    assert {g.skipped for g in got} == {want[name]["documents_skipped"][dim]}


def by_plain_means(m, human):
    "System level as recorded: means in the order of the file, where rounding noise can break a tie"
    return [
        meta.LevelCorrelation(meta.row_correlations(m.mean(1)[None], human.mean(1)[None], c)[0], 16, 1, 0)
        for c in COEF
    ]


def test_system_level_is_that_of_exact_sums_in_any_order(oracle, ice):
    "ICE scores have two decimals, so sums of hundredths are exact; the recorded .8059 misses a tie."
    recorded = oracle("evaluation.json")["ice_unieval_levels"]["results"]["ice_uniform"]["system"][
        "coherence"
    ]["spearman"]
    for dim, m in ice["ice_uniform"].items():
        exact = [np.rint(100 * v).sum(1)[None] for v in (m, ice["human"][dim])]
        for order in (slice(None), slice(None, None, -1), np.argsort(ice["first_summary_index"])):
            got = [
                meta._system_level(m[:, order], ice["human"][dim][:, order], c).value
                for c in ("spearman", "kendall")
            ]
            close(got, [meta.row_correlations(*exact, c)[0] for c in ("spearman", "kendall")], 1e-12)
    assert (
        abs(
            meta._system_level(ice["ice_uniform"]["coherence"], ice["human"]["coherence"], "spearman").value
            - recorded
        )
        > 0.003
    )


def test_unieval_in_full_precision_has_the_recorded_levels(oracle):
    if mirror() is None or not (mirror() / "ice" / "data_sms.json").exists():
        pytest.skip("UETRUST_MIRROR has no ice/data_sms.json")
    docs = [d["sys_summs"] for d in json.loads((mirror() / "ice" / "data_sms.json").read_text()).values()]

    def matrix(name):
        return np.array([[s["scores"][name] for s in d.values()] for d in docs], float).T

    keys = [int(next(iter(d))) for d in docs]
    want = oracle("evaluation.json")["ice_unieval_levels"]["results"]
    for dim in ("coherence", "consistency", "fluency", "relevance"):
        stored = matrix(f"unieval_{dim}")
        for name, m in dict(unieval_as_stored=stored, unieval_realigned=undo_sort(stored.T, keys).T).items():
            for at, level in (("sample", "pooled"), ("summary", "per_document"), ("system", "system")):
                got = (
                    by_plain_means(m, matrix(f"human_score_{dim}"))
                    if level == "system"
                    else [meta.CORRELATION_LEVELS[level](m, matrix(f"human_score_{dim}"), c) for c in COEF]
                )
                close([g.value for g in got], [want[name][at][dim][c] for c in COEF], 1e-6)


def test_the_printed_table_of_ice_is_pooled_and_truncated(oracle, ice):
    printed = oracle("evaluation.json")["ice_unieval_levels"]["paper_table1"]
    for name in ("ice_uniform", "ice_stratified"):
        got = [
            meta.pooled_level(ice[name][d], ice["human"][d], c).value
            for d in ice["human"]
            for c in ("spearman", "kendall")
        ]
        assert [int(1000 * v) / 1000 for v in got] == printed[name]
    unieval = {d: undo_sort(m.T, ice["first_summary_index"]).T for d, m in ice["unieval_as_stored"].items()}
    close(
        [
            meta.pooled_level(unieval[d], ice["human"][d], c).value
            for d in ice["human"]
            for c in ("spearman", "kendall")
        ],
        printed["unieval"],
        5e-4,
    )


@given(
    arrays(float, (4, 7), elements=st.integers(0, 4) | st.just(np.nan)),
    arrays(float, (4, 7), elements=st.integers(0, 4) | st.just(np.nan)),
)
def test_all_rows_at_once_is_scipy_row_by_row(x, y):
    slow = dict(pearson=stats.pearsonr, spearman=stats.spearmanr, kendall=stats.kendalltau)
    for coef, f in slow.items():
        for r, a, b in zip(meta.row_correlations(x, y, coef), x, y):
            ok = ~np.isnan(a + b)
            if len(set(a[ok])) < 2 or len(set(b[ok])) < 2:
                assert np.isnan(r)
            else:
                close(r, f(a[ok], b[ok])[0], 1e-12)


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("coef", COEF)
def test_a_constant_whose_mean_is_rounded_is_still_constant(coef):
    assert np.full(3, 0.1).sum() / 3 != 0.1
    assert np.isnan(meta.row_correlations(np.full((1, 3), 0.1), np.array([[1.0, 2, 4]]), coef)).all()


def test_short_and_long_rows_have_the_same_tau():
    x, y = np.random.default_rng(0).integers(0, 9, (2, 64)).astype(float)
    longer = [np.append(v, np.nan)[None] for v in (x, y)]
    close(
        meta.row_correlations(*longer, "kendall"), meta.row_correlations(x[None], y[None], "kendall"), 1e-12
    )


@given(arrays(float, (5, 4), elements=st.integers(0, 6)), arrays(float, (5, 4), elements=st.integers(0, 3)))
def test_tie_calibration_finds_the_best_of_all_tolerances(x, y):
    gaps = {0.0} | {abs(a - b) for d in x.T for a, b in combinations(d, 2)}
    slow = [(np.mean([meta._kendall_variant(a, b, "acc_23", e) for a, b in zip(x.T, y.T)]), -e) for e in gaps]
    best = max(v for v, _ in slow)
    got = meta._tie_calibrated(x, y)
    close(got[0], best, 1e-12)
    close(got[1], min(-e for v, e in slow if v > best - 1e-9), 0)


# Parametric tests
@pytest.mark.parametrize("coef", COEF)
@pytest.mark.parametrize("level", LEVEL)
def test_fisher_and_williams_are_those_of_nlpstats(nlp, xyz, level, coef):
    x, y, z = xyz
    f = meta.CORRELATION_LEVELS[LEVEL[level]]
    r = f(x, z, coef)
    close(meta.fisher_interval(r.value, r.n, coef), nlp["fisher_95"][f"{level}/{coef}"], 1e-12)
    for alt in ("two-sided", "greater", "less"):
        between = f(x, y, coef).value
        got = meta._williams_test(r.value, f(y, z, coef).value, between, r.n, alt, magnitude=True).p
        if abs(between) > 1 - 1e-12:
            assert np.isnan(got)  # 0/0: the peer's rounding gives NaN for Spearman, p=1 for Kendall
        else:
            close(got, nlp["williams"][f"{level}/{coef}/{alt}"], 1e-10)


@pytest.mark.parametrize("coef", ("pearson", "spearman"))
def test_one_sided_williams_is_that_of_mt_metrics_eval(mt, xyz, coef):
    x, y, z = xyz
    a, b, c = (meta.pooled_level(*p, coef) for p in ((x, z), (y, z), (x, y)))
    close(
        [meta._williams_test(a.value, b.value, c.value, a.n, "larger").p, a.value, b.value],
        mt[f"WilliamsSigDiff/{coef}"],
        1e-10,
    )


def frank(oracle, name):
    d = oracle("evaluation.json")["frank_valid_inputs"]
    return np.array(
        [np.nan if v is None else v for v in d[name]], dtype=object if isinstance(d[name][0], str) else float
    )


FRANK = ("valid/both/partial_model_name", "valid/both/raw", "valid/cnndm/partial_model_name", "valid/bbc/raw")


@pytest.mark.parametrize("key", FRANK)
def test_frank_partial_correlations(oracle, key):
    want = oracle("evaluation.json")["frank_partial_correlations"][key]
    _, data, what = key.split("/")
    part = frank(oracle, "dataset") == data if data != "both" else np.ones(671, bool)
    groups = frank(oracle, "model_name") if what != "raw" else np.zeros(671, int)
    for m, (r, pr, rho, prho) in want.items():
        got = meta.partial_correlation(
            frank(oracle, m)[part], frank(oracle, "Factuality")[part], groups[part], df="n"
        )
        close(got[:4], (r, pr, rho, prho), 1e-8)


def test_franks_williams_between_metrics(oracle):
    want = oracle("evaluation.json")["frank_partial_correlations"]["valid/cnndm/mm_williams"]
    part = frank(oracle, "dataset") == "cnndm"
    human, system = frank(oracle, "Factuality")[part], frank(oracle, "model_name")[part]
    for (i, a), (j, b) in combinations(enumerate(want["metrics"]), 2):
        x, y = (frank(oracle, m)[part] for m in (a, b))
        both = ~np.isnan(x + y)
        r = [
            meta.partial_correlation(u[both], v[both], system[both]).pearson
            for u, v in ((x, human), (y, human), (x, y))
        ]
        close(r[2], want["corr"][i][j], 1e-8)
        close(meta._williams_test(*r, both.sum(), "larger").p, want["p"][i][j], 1e-8)


@given(arrays(float, 12, elements=st.integers(-5, 5)), arrays(float, 12, elements=st.integers(-5, 5)))
def test_partial_correlation_is_a_regression_on_group_indicators(x, y):
    g = np.repeat([0, 1, 2], 4)
    hat = np.eye(3)[g]
    a, b = (v - hat @ np.linalg.lstsq(hat, v, rcond=None)[0] for v in (x, y))
    got = meta.partial_correlation(x, y, g)
    if np.ptp(a) < 1e-9 or np.ptp(b) < 1e-9:
        assert np.isnan(got.pearson)
    else:
        close(got.pearson, a @ b / np.sqrt(a @ a * (b @ b)), 1e-12)
        if abs(got.pearson) < 0.999:
            close(
                got.p_pearson, 2 * stats.t.sf(abs(got.pearson) * np.sqrt(8 / (1 - got.pearson**2)), 8), 1e-9
            )


# Resampling
@pytest.mark.parametrize("units", UNITS)
@pytest.mark.parametrize("coef", ("pearson", "kendall"))
@pytest.mark.parametrize("level", LEVEL)
def test_bootstrap_repeats_the_draws_of_nlpstats(nlp, xyz, level, coef, units):
    want = nlp["bootstrap_seed1234_B100"][f"{level}/{coef}/{units}"]
    got = rt.bootstrap_interval(
        xyz[0], xyz[2], LEVEL[level], coef, UNITS[units], 100, np.random.RandomState(1234)
    )
    close(got.draws[:5], want["first"], 1e-12)
    close((got.lo, got.hi, 100 - got.undefined), (want["lower"], want["upper"], want["n_kept"]), 1e-12)


def test_as_many_concordant_as_discordant_pairs_give_tau_0_and_not_nan():
    for variant in ("tau_b", "tau_c"):
        assert meta._kendall_variant([1, 2, 3, 4], [2, 4, 1, 3], variant) == 0
