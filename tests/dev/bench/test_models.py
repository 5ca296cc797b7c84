"""Benchmark of models: passes that are read together, and each separately."""

from uetrust.core.settings import root
from uetrust.data.datasets import load_samples
from uetrust.dev.bench import models as bench
from uetrust.dev.bench.models import _bench_passes, _print_pass_bench
from uetrust.generation.decoding import Decoding
from uetrust.models.load import load_model

SETTINGS = Decoding(samples=3, max_new_tokens=12, prompt="Summary: {source}", document="{source}")


def test_the_bench_measures_both_ways(capsys):
    model = load_model(root() / "data" / "models" / "tiny-llama")
    found = _bench_passes(model, load_samples("bulletin:test:3"), SETTINGS, repeats=1)
    assert found["prefills_together"] == 1 and found["prefills_separate"] == 5
    assert found["difference"] < 1e-6 and found["together"] > 0 < found["separate"]
    _print_pass_bench(found, "tiny-llama")
    output = capsys.readouterr().out
    assert "5 passes together" in output and "with 1 prefill of a document, separately" in output


def test_the_named_model_is_measured_where_it_was_fetched(capsys, monkeypatch):
    monkeypatch.setattr(bench, "NAMED", "data/models/tiny-llama")
    monkeypatch.setattr(bench, "NAMED_DECODING", SETTINGS)
    bench.bench_named_model(n=1, several=3)
    output = capsys.readouterr().out
    assert (
        "generated" in output
        and "3 texts of a source of" in output
        and "largest memory of the process" in output
    )
    monkeypatch.setattr(bench, "NAMED", "data/models/none")
    bench.bench_named_model(n=1)
    assert "data/models/none was not measured: no model folder" in capsys.readouterr().out
