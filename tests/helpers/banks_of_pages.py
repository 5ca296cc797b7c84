"""What the tests of sentences share."""

import numpy as np
import pandas as pd
import pytest

from uetrust.papers.bulletins import inputs

BANK = "bulletin--tiny-bart"


def tidy(name, values):
    texts = [f"t{i}" for i in range(len(values))]
    return pd.DataFrame(dict(sample=texts, name=name, value=values, note=""))


@pytest.fixture
def toy_bank(tmp_path, monkeypatch):
    "Scores of twelve texts in the folder of a profile; making anything of a bank is an error"
    monkeypatch.setattr(inputs, "out_dir", lambda profile: tmp_path)
    rng = np.random.default_rng(0)
    truth = pd.Series(rng.random(12), [f"t{i}" for i in range(12)], name="truth")
    methods = pd.concat([tidy("msp", -truth.to_numpy()), tidy("mte", rng.random(12)), tidy("md", [1.0] * 12)])
    metrics = pd.concat([tidy("rouge_l", truth.to_numpy() ** 2), tidy("bert_score_f1", rng.random(12))])
    metrics = metrics[metrics["name"].isin(list(inputs.reg))]
    (tmp_path / "scores").mkdir()
    for frame, end, lacks in ((methods, "", ["own"]), (metrics, "_quality", ["a model", "a reference"])):
        frame.attrs["missing"] = {"p_true" if not end else "ctc": lacks}
        frame.to_parquet(tmp_path / "scores" / f"{BANK}{end}.parquet", index=False)
    monkeypatch.setattr(inputs, "truth_of", lambda plan: truth)
    monkeypatch.setattr(
        inputs, "run_pipeline", lambda *given, **options: pytest.fail("the bank was made again")
    )
    return tmp_path, truth
