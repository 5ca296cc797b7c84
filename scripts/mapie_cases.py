"""Cases of risk control by MAPIE 1.6, written once in an environment of its own:

python3 -m venv runs/.mapie && runs/.mapie/bin/pip install mapie==1.6.0
runs/.mapie/bin/python scripts/mapie_cases.py > tests/fixtures/mapie.json
"""

import json
import warnings
from importlib.metadata import version

import numpy as np
from mapie.risk_control import BinaryClassificationController, precision
from mapie.risk_control.methods import (
    compute_hoeffding_bentkus_p_value,
    find_best_predict_param,
    get_r_hat_plus,
)

GRID = np.round(np.linspace(0, 1, 41), 3)  # Thresholds on confidence


def labelled(seed, n=300):
    "Confidence, and labels that are bad with probability (1 - confidence)^2 / 2."
    rng = np.random.default_rng(seed)
    confidence = np.round(rng.random(n), 4)
    return confidence, (rng.random(n) >= (1 - confidence) ** 2 / 2).astype(int)


def p_values():
    "Hoeffding-Bentkus p-values: (risk, n, alpha, binary) -> p."
    cases = [
        (risk, n, alpha, binary)
        for risk, n in ((0.0, 10), (0.05, 40), (0.1, 100), (0.25, 80), (0.5, 20), (0.07, 100))
        for alpha in (0.1, 0.3)
        for binary in (True, False)
    ]
    found = [
        float(compute_hoeffding_bentkus_p_value(np.array([risk]), np.array([n]), alpha, binary)[0, 0])
        for risk, n, alpha, binary in cases
    ]
    return [dict(risk=r, n=n, alpha=a, binary=b, p=p) for (r, n, a, b), p in zip(cases, found)]


def controlled(seed, alpha, delta, grid):
    "Thresholds of the controller for a share of bad texts among kept ones."
    confidence, labels = labelled(seed)
    controller = BinaryClassificationController(
        predict_function=lambda x: np.column_stack([1 - x[:, 0], x[:, 0]]),
        risk=precision,
        target_level=1 - alpha,
        confidence_level=1 - delta,
        list_predict_params=np.array(grid),
        fwer_method="fixed_sequence",
    )
    controller.calibrate(confidence[:, None], labels)
    return dict(
        seed=seed,
        alpha=alpha,
        delta=delta,
        grid=list(grid),
        confidence=confidence.tolist(),
        labels=labels.tolist(),
        valid=np.asarray(controller.valid_predict_params, float).tolist(),
        p=np.ravel(controller.p_values).tolist(),
    )


def conformal(seed, alpha):
    "Threshold of conformal risk control for the loss bad times kept."
    confidence, labels = labelled(seed)
    loss = (1 - labels)[:, None] * (confidence[:, None] >= GRID)
    plus = get_r_hat_plus(loss, GRID, "crc", None, None, None)[1]
    best = float(find_best_predict_param(GRID, plus, np.array([alpha]))[0])
    return dict(seed=seed, alpha=alpha, plus=plus.tolist(), best=best)


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    # The sequence starts where a test can pass: MAPIE has no such rule, so its grid begins there
    grids = [GRID[GRID <= 0.7], GRID[GRID <= 0.7], GRID]
    levels = [(1, 0.1, 0.1), (2, 0.15, 0.05), (3, 0.2, 0.1)]
    cases = dict(
        versions={name: version(name) for name in ("mapie", "numpy", "scipy", "scikit-learn")},
        command="runs/.mapie/bin/python scripts/mapie_cases.py > tests/fixtures/mapie.json",
        p_values=p_values(),
        controlled=[controlled(*level, grid) for level, grid in zip(levels, grids)],
        conformal=[conformal(seed, alpha) for seed, alpha in ((1, 0.05), (2, 0.1))],
    )
    print(json.dumps(cases))
