"""Measured stages against the cost model: its operations, and lengths as the model sees them."""

import pytest

from uetrust.core.settings import resolve_checkpoint
from uetrust.data.datasets import load_samples
from uetrust.dev.bench import stages
from uetrust.dev.bench.stages import MEASURED_PASSES, _measured_lengths, stage_times
from uetrust.generation.local import generate_texts, render_prompts
from uetrust.models.load import load_model
from uetrust.scoring.generators import generator_settings


def test_a_stage_has_the_operations_of_the_cost_model_and_a_share_of_the_rate(monkeypatch):
    monkeypatch.setattr(stages, "matrix_product_rate", lambda device: 1e12)
    table = stage_times("tiny-bart", sources=2).set_index("stage")
    assert list(table.index) == ["texts", *MEASURED_PASSES] and (table["seconds"] > 0).all()
    assert table["share"].tolist() == pytest.approx((table["gflops"] / table["seconds"] / 1e3).tolist())
    assert table.loc["unconditional", "gflops"] < table.loc["conditional", "gflops"]


def test_lengths_are_means_of_what_the_model_reads_and_writes():
    settings, samples = generator_settings("tiny-bart"), load_samples("bulletin:test:3")
    model = load_model(resolve_checkpoint(settings.model))
    rows = generate_texts(model, samples, settings.decoding, settings.batch)
    found = _measured_lengths(model, samples, rows, settings.decoding)
    prompts = [len(ids) for ids, _ in render_prompts(model, list(samples["source"]), settings.decoding)]
    assert found[0] == sum(prompts) / 3 and found[2] == sum(len(row["ids"]) for row in rows) / len(rows)
