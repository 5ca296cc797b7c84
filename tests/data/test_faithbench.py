"""FaithBench: what a file of it must hold."""

import json

import pytest

from uetrust.data import faithbench as loader
from uetrust.data.loaders import BadData

SAMPLE = dict(
    sample_id=3,
    source="s",
    summary="t",
    annotations=[dict(annotator_id="x", label=["Unwanted", "Unwanted.Intrinsic"])],
    metadata=dict(summarizer="m") | dict.fromkeys(loader.FAITHBENCH_DETECTORS, 0.5),
)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (dict(annotations=[dict(annotator_id="x", label=["Wrong"])]), "found Wrong, expected labels"),
        (
            dict(metadata=SAMPLE["metadata"] | dict(trueteacher=2)),
            "trueteacher = 2, expected scores from 0 to 1",
        ),
        (dict(metadata=dict(summarizer="m")), "expected every field"),
    ],
)
def test_a_strange_sample_is_named(tmp_path, monkeypatch, change, message):
    path = tmp_path / "batch.json"
    path.write_text(json.dumps(dict(samples=[SAMPLE | change])))
    monkeypatch.setattr(loader, "_faithbench_files", lambda: ["faithbench/batch_1.json"])
    monkeypatch.setattr(loader, "fetch_file", lambda name: path)
    with pytest.raises(BadData) as e:
        loader.faithbench()
    assert message in str(e.value) and "faithbench/batch_1.json, sample 3" in str(e.value)
