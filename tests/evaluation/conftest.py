"""Fixtures of several files of this folder."""

import numpy as np
import pytest

from tests.helpers.measure_cases import RANKED
from tests.helpers.prr_cases import floats
from uetrust.evaluation.pairs import acceptable_labels


@pytest.fixture(scope="session")
def case(oracle):
    def load(name):
        recorded = oracle("evaluation.json")["prr"][name]
        return floats(recorded["inputs"]["quality"]), floats(recorded["inputs"]["uncertainty"]), recorded

    return load


@pytest.fixture(params=RANKED)
def ranked(request, oracle):
    "One recorded case: quality on 0..1, labels, uncertainty, recorded values"
    e = oracle("evaluation.json")
    want, case = e["ue_metrics"][request.param], e["prr"][request.param]["inputs"]
    quality = np.array(case["quality"], float)
    y = quality if want["threshold"] is None else acceptable_labels(quality, want["threshold"])
    return (quality - quality.min()) / np.ptp(quality), y, np.array(case["uncertainty"], float), want


@pytest.fixture
def nlp(oracle):
    return oracle("evaluation.json")["nlpstats"]


@pytest.fixture
def xyz(nlp):
    return [np.array(nlp["inputs"][k]) for k in "XYZ"]


@pytest.fixture
def mt(oracle):
    return oracle("evaluation.json")["mt_metrics_eval"]["outputs"]


@pytest.fixture
def ice(oracle):
    return {
        k: {d: np.array(v).T for d, v in t.items()} if isinstance(t, dict) else t
        for k, t in oracle("evaluation.json")["ice_inputs"].items()
    }
