"""Meta-evaluation against recorded outputs of peers: levels, intervals, tests, resampling."""
import random
from functools import partial
from itertools import combinations

import numpy as np, pytest
from hypothesis import given, strategies as st
from hypothesis.extra.numpy import arrays
from scipy import stats

from uetrust import meta, resampling_tests as rt

COEF = ('pearson', 'spearman', 'kendall')
LEVEL = dict(system='system', input='per_document', **{'global': 'pooled'})
UNITS = dict(systems='systems', inputs='documents', both='both')
SWAP = dict(systems='rows', inputs='columns', both='rows_columns')

@pytest.fixture
def nlp(oracle): return oracle('evaluation.json')['nlpstats']

@pytest.fixture
def xyz(nlp): return [np.array(nlp['inputs'][k]) for k in 'XYZ']

@pytest.fixture
def mt(oracle): return oracle('evaluation.json')['mt_metrics_eval']['outputs']

@pytest.fixture
def ice(oracle): return {k:{d:np.array(v).T for d,v in t.items()} if isinstance(t, dict) else t for k,t in oracle('evaluation.json')['ice_inputs'].items()}

def close(a, b, tol): np.testing.assert_allclose(np.array(a, float), np.array(b, float), rtol=0, atol=tol)

# Levels

@pytest.mark.parametrize('coef', COEF)
@pytest.mark.parametrize('level', LEVEL)
def test_levels_are_those_of_nlpstats(nlp, xyz, level, coef):
    holes = [m.copy() for m in xyz]
    for m in holes: m[tuple(np.transpose(nlp['inputs']['nan_cells']))] = np.nan
    f = meta.LEVELS[LEVEL[level]]
    for (x, y, z),kind in ((xyz, 'full'), (holes, 'nan')):
        close([f(x, z, coef).value, f(y, z, coef).value], list(nlp['correlate'][f'{level}/{coef}/{kind}'].values()), 1e-12)

@pytest.mark.parametrize('by,level', [('none', 'pooled'), ('sys', 'per_system'), ('item', 'per_document')])
def test_averages_are_those_of_mt_metrics_eval(mt, xyz, by, level):
    x,_,z = xyz
    gold = z.copy().ravel(); gold[[3, 40]] = np.nan
    for coef in ('pearson', 'spearman'):
        for g,kind in ((z, 'full'), (gold.reshape(z.shape), 'none_filtered')):
            want,got = mt[f'{coef.title()}/{by}'][kind],meta.LEVELS[level](x, g, coef)
            close(got.value, want[0], 1e-12)
            assert got.groups==want[2]
    for v in ('b', '23', 'acc23'):
        for eps in (0., .3):
            coef = partial(meta.kendall_variant, variant='acc_23' if v=='acc23' else 'tau_'+v, epsilon=eps)
            close(meta.LEVELS[level](x, z, coef).value, mt[f'KendallVariants/{by}/{v}/eps{eps}'], 1e-12)
    close(meta.LEVELS[level](x, z, partial(meta.kendall_variant, variant='tau_c')).value, mt[f'KendallVariants/{by}/c'], 1e-12)

def test_the_kendall_like_count_is_wmts(mt, xyz):
    value,_,pairs = mt['KendallLike/item/thresh1.0']
    got = meta.kendall_like(xyz[0], xyz[2], 1.)
    close(got.value, value, 1e-12)
    assert got.pairs==pairs

def test_realigned_columns_give_the_printed_table_of_ice(oracle, ice):
    want = oracle('evaluation.json')['ice_unieval_levels']['results']
    tables = {k:ice[k] for k in ('ice_uniform', 'ice_stratified', 'unieval_as_stored')}
    tables['unieval_realigned'] = {d:meta.realigned(m.T, ice['first_summary_index']).T for d,m in ice['unieval_as_stored'].items()}
    for name,t in tables.items():
        for dim,m in t.items():
            for at,level in (('sample', 'pooled'), ('summary', 'per_document'), ('system', 'system')):
                got = [meta.LEVELS[level](m, ice['human'][dim], c) for c in COEF]
                close([g.value for g in got], [want[name][at][dim][c] for c in COEF], 1.5e-6 if level=='per_document' else 6e-7)
                if level=='per_document': assert {g.skipped for g in got}=={want[name]['documents_skipped'][dim]}

@given(arrays(float, (4, 7), elements=st.integers(0, 4)|st.just(np.nan)), arrays(float, (4, 7), elements=st.integers(0, 4)|st.just(np.nan)))
def test_all_rows_at_once_is_scipy_row_by_row(x, y):
    slow = dict(pearson=stats.pearsonr, spearman=stats.spearmanr, kendall=stats.kendalltau)
    for coef,f in slow.items():
        for r,a,b in zip(meta.row_correlations(x, y, coef), x, y):
            ok = ~np.isnan(a+b)
            if len(set(a[ok]))<2 or len(set(b[ok]))<2: assert np.isnan(r)
            else: close(r, f(a[ok], b[ok])[0], 1e-12)

def test_short_and_long_rows_have_the_same_tau():
    x,y = np.random.default_rng(0).integers(0, 9, (2, 64)).astype(float)
    longer = [np.append(v, np.nan)[None] for v in (x, y)]
    close(meta.row_correlations(*longer, 'kendall'), meta.row_correlations(x[None], y[None], 'kendall'), 1e-12)

@given(arrays(float, (5, 4), elements=st.integers(0, 6)), arrays(float, (5, 4), elements=st.integers(0, 3)))
def test_tie_calibration_finds_the_best_of_all_tolerances(x, y):
    gaps = {0.}|{abs(a-b) for d in x.T for a,b in combinations(d, 2)}
    slow = [(np.mean([meta.kendall_variant(a, b, 'acc_23', e) for a,b in zip(x.T, y.T)]), -e) for e in gaps]
    best = max(v for v,_ in slow)
    got = meta.tie_calibrated(x, y)
    close(got[0], best, 1e-12)
    close(got[1], min(-e for v,e in slow if v>best-1e-9), 0)

# Parametric tests

@pytest.mark.parametrize('coef', COEF)
@pytest.mark.parametrize('level', LEVEL)
def test_fisher_and_williams_are_those_of_nlpstats(nlp, xyz, level, coef):
    x,y,z = xyz
    f = meta.LEVELS[LEVEL[level]]
    r = f(x, z, coef)
    close(meta.fisher_interval(r.value, r.n, coef), nlp['fisher_95'][f'{level}/{coef}'], 1e-12)
    for alt in ('two-sided', 'greater', 'less'):
        got = meta.williams(r.value, f(y, z, coef).value, f(x, y, coef).value, r.n, alt, magnitude=True).p
        close(got, nlp['williams'][f'{level}/{coef}/{alt}'], 1e-10)

@pytest.mark.parametrize('coef', ('pearson', 'spearman'))
def test_one_sided_williams_is_that_of_mt_metrics_eval(mt, xyz, coef):
    x,y,z = xyz
    a,b,c = (meta.pooled(*p, coef) for p in ((x, z), (y, z), (x, y)))
    close([meta.williams(a.value, b.value, c.value, a.n, 'larger').p, a.value, b.value], mt[f'WilliamsSigDiff/{coef}'], 1e-10)

def frank(oracle, name):
    d = oracle('evaluation.json')['frank_valid_inputs']
    return np.array([np.nan if v is None else v for v in d[name]], dtype=object if isinstance(d[name][0], str) else float)

FRANK = ('valid/both/partial_model_name', 'valid/both/raw', 'valid/cnndm/partial_model_name', 'valid/bbc/raw')

@pytest.mark.parametrize('key', FRANK)
def test_frank_partial_correlations(oracle, key):
    want = oracle('evaluation.json')['frank_partial_correlations'][key]
    _,data,what = key.split('/')
    part = frank(oracle, 'dataset')==data if data!='both' else np.ones(671, bool)
    groups = frank(oracle, 'model_name') if what!='raw' else np.zeros(671, int)
    for m,(r,pr,rho,prho) in want.items():
        got = meta.partial_correlation(frank(oracle, m)[part], frank(oracle, 'Factuality')[part], groups[part], df='n')
        close(got[:4], (r, pr, rho, prho), 1e-8)

def test_franks_williams_between_metrics(oracle):
    want = oracle('evaluation.json')['frank_partial_correlations']['valid/cnndm/mm_williams']
    part = frank(oracle, 'dataset')=='cnndm'
    human,system = frank(oracle, 'Factuality')[part],frank(oracle, 'model_name')[part]
    for (i, a),(j, b) in combinations(enumerate(want['metrics']), 2):
        x,y = (frank(oracle, m)[part] for m in (a, b))
        both = ~np.isnan(x+y)
        r = [meta.partial_correlation(u[both], v[both], system[both]).pearson for u,v in ((x, human), (y, human), (x, y))]
        close(r[2], want['corr'][i][j], 1e-8)
        close(meta.williams(*r, both.sum(), 'larger').p, want['p'][i][j], 1e-8)

@given(arrays(float, 12, elements=st.integers(-5, 5)), arrays(float, 12, elements=st.integers(-5, 5)))
def test_partial_correlation_is_a_regression_on_group_indicators(x, y):
    g = np.repeat([0, 1, 2], 4)
    hat = np.eye(3)[g]
    a,b = (v-hat@np.linalg.lstsq(hat, v, rcond=None)[0] for v in (x, y))
    got = meta.partial_correlation(x, y, g)
    if np.ptp(a)<1e-9 or np.ptp(b)<1e-9: assert np.isnan(got.pearson)
    else:
        close(got.pearson, a@b/np.sqrt(a@a*(b@b)), 1e-12)
        if abs(got.pearson)<.999: close(got.p_pearson, 2*stats.t.sf(abs(got.pearson)*np.sqrt(8/(1-got.pearson**2)), 8), 1e-9)
