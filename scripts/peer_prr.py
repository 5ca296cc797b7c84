"""peer_prr.py SOURCES CASES [NAME...]: "PRR" of stored scores as other people's code computes it.

Writes data/prr_atlas.json: adds to CASES, under each case, the value of every definition NAME (default: all).
It runs in environments of its own, where uetrust is not installed:

    python -m venv new && new/bin/pip install --no-deps lm-polygraph==0.7.0 TruthTorchLM==0.1.19
    new/bin/pip install numpy scikit-learn pandas
    python -m venv old && old/bin/pip install numpy==1.23.5 scikit-learn==1.2.2
    new/bin/python scripts/peer_prr.py SOURCES data/prr_atlas.json new
    old/bin/python scripts/peer_prr.py SOURCES data/prr_atlas.json old

SOURCES is a folder with the functions that no package holds, each cut by hand from the file that
`uetrust.evaluation.atlas.PRR_DEFINITIONS` names (drawing and reading of files left out): kaos_rejection.py,
kaos_seq.py, query_level.py, median_gain.py, trapezoid.py, trapezoid_50.py. Nothing of them is stored here.
"""

import ast
import importlib.util
import json
import sys
import sysconfig
from importlib.metadata import version
from pathlib import Path
from types import SimpleNamespace

import numpy as np

SEED = 0  # Of NumPy's global generator, where the code draws without a seed of its own


def made_cases():
    "Quality and uncertainty without ties: under ties the order of an unstable sort decides"
    rng, cases = np.random.default_rng(20261124), {}
    for name, n, share in (("labels_40", 40, 0.4), ("labels_200", 200, 0.9)):
        quality = (rng.random(n) < share).astype(float)
        cases[name] = quality, rng.normal(size=n) - quality
    for name, n in (("shares_57", 57), ("shares_300", 300)):
        quality = rng.beta(2, 1, n).round(6)
        cases[name] = quality, rng.normal(size=n) - 2 * quality
    return {
        name: dict(quality=list(q), uncertainty=list(u.round(9)), values={}) for name, (q, u) in cases.items()
    }


def functions(path, names=None, **known):
    "Functions and classes of a file, without its imports"
    tree = ast.parse(Path(path).read_text())
    wanted = [
        node
        for node in tree.body
        if isinstance(node, ast.FunctionDef | ast.ClassDef) and (names is None or node.name in names)
    ]
    space = dict(np=np, List=list, **known)
    exec(compile(ast.Module(wanted, []), str(path), "exec"), space)
    return SimpleNamespace(**space)


def lm_polygraph(max_rejection, normalised=True):
    folder = Path(sysconfig.get_paths()["purelib"]) / "lm_polygraph" / "ue_metrics"
    base = functions(folder / "ue_metric.py", ["normalize", "get_random_scores", "normalize_metric"])
    area = functions(folder / "pred_rej_area.py", UEMetric=object, normalize=base.normalize)
    return base, area.PredictionRejectionArea(max_rejection)


def lm_polygraph_prr(max_rejection):
    base, area = lm_polygraph(max_rejection)

    def value(quality, uncertainty):
        raw, oracle = area(uncertainty, quality), area(-quality, quality)
        return base.normalize_metric(raw, oracle, base.get_random_scores(area, quality))

    return value


def lm_polygraph_raw(max_rejection):
    return lambda quality, uncertainty: lm_polygraph(max_rejection)[1](uncertainty, quality)


def risk_coverage(quality, uncertainty, normalize):
    base, _ = lm_polygraph(1.0)
    folder = Path(sysconfig.get_paths()["purelib"]) / "lm_polygraph" / "ue_metrics"
    area = functions(folder / "risk_cov_curve.py", UEMetric=object, normalize=base.normalize)
    area = area.RiskCoverageCurveAUC(normalize)
    raw, oracle = area(uncertainty, quality), area(-quality, quality)
    return base.normalize_metric(raw, oracle, base.get_random_scores(area, quality))


def truthtorchlm(quality, uncertainty):
    folder = Path(sysconfig.get_paths()["purelib"]) / "TruthTorchLM" / "utils"
    names = ["normalize", "prediction_rejection_curve", "get_random_scores", "metric_score"]
    code = functions(folder / "eval_utils.py", names)
    return code.metric_score(["prr"], list(quality), list(-uncertainty), list(-uncertainty))["prr"]


def by_hand(sources, file):
    spec = importlib.util.spec_from_file_location(file, Path(sources) / f"{file}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    np.random.seed(SEED)  # noqa: NPY002
    return module


def prior_networks(sources):
    def value(quality, uncertainty):
        labels, right = np.zeros(len(quality), int), quality == 1
        probs = np.stack([np.where(right, 0.9, 0.1), np.where(right, 0.1, 0.9)], 1)
        return by_hand(sources, "kaos_rejection").reject_class(labels, probs, uncertainty, False)

    return value


def new(sources):
    return dict(
        he2024=lambda q, u: risk_coverage(q, u, True),
        he2024_sum=lambda q, u: risk_coverage(q, u, False),
        lm_polygraph=lm_polygraph_prr(1.0),
        lm_polygraph_50=lm_polygraph_prr(0.5),
        lm_polygraph_raw=lm_polygraph_raw(1.0),
        lm_polygraph_raw_50=lm_polygraph_raw(0.5),
        truthtorchlm=truthtorchlm,
        query_level=lambda q, u: by_hand(sources, "query_level").compute_prr(q, -u),
        median_gain=lambda q, u: by_hand(sources, "median_gain").compute_prr(u, q),
        trapezoid_full=lambda q, u: by_hand(sources, "trapezoid").prr(u, q),
        trapezoid_50=lambda q, u: by_hand(sources, "trapezoid_50").compute_prr(q, u),
    )


def old(sources):
    return dict(
        prior_networks=prior_networks(sources),
        structured_uncertainty=lambda q, u: by_hand(sources, "kaos_seq").reject_predictions_bleu(100 * q, u),
    )


LABELS_ONLY = ("prior_networks", "query_level")


def main(sources, file, which):
    path = Path(file)
    told = json.loads(path.read_text()) if path.exists() else dict(seed=SEED, versions={}, cases=made_cases())
    definitions = dict(new=new, old=old)[which](sources)
    for case in told["cases"].values():
        quality, uncertainty = (np.array(case[key], float) for key in ("quality", "uncertainty"))
        labels = np.isin(quality, [0, 1]).all()
        for name, value in definitions.items():
            if labels or name not in LABELS_ONLY:
                case["values"][name] = float(np.squeeze(value(quality, uncertainty)))
    packages = dict(
        new=("numpy", "scikit-learn", "lm-polygraph", "TruthTorchLM"), old=("numpy", "scikit-learn")
    )
    told["versions"][which] = {name: version(name) for name in packages[which]}
    path.write_text(json.dumps(told, indent=None, separators=(",", ":")) + "\n")


if __name__ == "__main__":
    main(*sys.argv[1:])
