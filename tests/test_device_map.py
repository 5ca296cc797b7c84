"""A checkpoint whose parts lie on several devices: here some wait on disk until their turn. What is divided
over two GPUs is in test_fake_cuda.py."""

import sys

import numpy as np
import pytest
from test_fill import INI
from test_generate import SAMPLES, tiny
from test_readings import framed

from uetrust.app.cli import main
from uetrust.core.checks import BadCheckpoint
from uetrust.generation.decoding import Decoding
from uetrust.generation.local import generate_texts
from uetrust.models.forward import score_tokens
from uetrust.models.load import load_model
from uetrust.scoring import engine
from uetrust.scoring.generators import generator_settings
from uetrust.stats.attention import attention_statistics
from uetrust.stats.beams import ensemble_forward

LLAMA = ("rotary_emb", "norm", "layers.0")
BART = [f"{side}.{part}" for side in ("encoder", "decoder") for part in ("embed_tokens", "embed_positions")]
BART += ["shared", "encoder.layernorm_embedding", "decoder.layernorm_embedding", "decoder.layers.0"]
DEVICES = dict(
    llama={f"model.{part}": "cpu" for part in LLAMA}
    | {"model.embed_tokens": "disk", "model.layers.1": "disk", "lm_head": "disk"},
    bart={f"model.{part}": "cpu" for part in BART}
    | {"model.encoder.layers": "disk", "model.decoder.layers.1": "disk"}
    | {"lm_head": "cpu", "final_logits_bias": "cpu"},
)
FILL = ["fill", "toy--writer", "--profile", "small"]


@pytest.fixture(scope="module")
def folders(tmp_path_factory):
    d = tmp_path_factory.mktemp("models")
    for name, m in (("bart", framed("bart")), ("llama", tiny("llama", chat=True))):
        m.model.save_pretrained(d / name)
        m.tokenizer.save_pretrained(d / name)
    return d


@pytest.fixture(params=["bart", "llama"])
def both(request, folders):
    "A checkpoint whole and in parts"
    folder = folders / request.param
    return load_model(folder, device="cpu"), load_model(folder, device_map=DEVICES[request.param])


@pytest.mark.filterwarnings("ignore:The following device_map keys:UserWarning")
def test_a_divided_checkpoint_writes_and_reads_as_the_whole_one(both):
    whole, parts = both
    assert any(weight.is_meta for weight in parts.model.parameters()), "some weights are on disk"
    assert (parts.device, set(parts.devices.split())) == ("cpu", {"cpu", "disk"})
    assert parts.version == whole.version
    settings = Decoding(samples=2, beams=2, max_new_tokens=6)
    rows = [[row["ids"] for row in generate_texts(m, SAMPLES[:2], settings)] for m in both]
    assert rows[0] == rows[1]
    pairs = [(SAMPLES["source"][0], "w1 w2 w3"), (SAMPLES["source"][0], "w4")]
    for one, other in zip(*(score_tokens(m, pairs, topk=2, hidden=["decoder_mean"]) for m in both)):
        np.testing.assert_array_equal(one.top_logp, other.top_logp)
        np.testing.assert_array_equal(one.hidden["decoder_mean"], other.hidden["decoder_mean"])
    maps = [attention_statistics(m, pairs)[0]["attention_previous"] for m in both]
    np.testing.assert_array_equal(*maps)


@pytest.mark.filterwarnings("ignore:The following device_map keys:UserWarning")
def test_after_a_search_of_an_ensemble_a_divided_checkpoint_moves_its_tensors_as_before(both):
    parts = both[1]
    before = parts.model.forward
    with ensemble_forward(parts, None, None, 2, []):
        assert parts.model.forward is not before
    assert parts.model.forward is before


def test_a_checkpoint_that_one_device_holds_is_not_divided(folders):
    model = load_model(folders / "llama", device_map="auto")
    assert (model.devices, model.version) == ("cpu", load_model(folders / "llama").version)


def test_a_part_without_a_device_is_named_with_the_remedy(folders):
    with pytest.raises(BadCheckpoint, match="lm_head.weight.*Name for every part a device that is here"):
        load_model(folders / "llama", device_map={"model": "disk"})


def test_a_device_and_a_device_map_exclude_each_other(folders):
    with pytest.raises(ValueError, match="device = 'cpu' or device_map = 'auto': leave one of the two out"):
        load_model(folders / "llama", device="cpu", device_map="auto")


@pytest.fixture(scope="module")
def project(tmp_path_factory):
    "A folder that looks like a checkout"
    d = tmp_path_factory.mktemp("project")
    (d / "nbs").mkdir()
    more = "\n[generator.broken]\nmodel = a\ndevice_map = cuda:0\n[generator.far]\nmodel = a\n"
    far = "endpoint = http://127.0.0.1:1/v1\ndevice_map = auto\n"
    (d / "settings.ini").write_text(INI + more + far)
    SAMPLES[:2].assign(reference="w3").to_json(d / "toy.jsonl", orient="records", lines=True)
    SAMPLES[2:4].assign(reference="w3").to_json(d / "train.jsonl", orient="records", lines=True)
    return d


def test_without_accelerate_the_remedy_is_named(folders, monkeypatch):
    monkeypatch.setitem(sys.modules, "accelerate", None)
    with pytest.raises(LookupError, match=r"pip install 'uetrust\[accelerate\]'"):
        load_model(folders / "llama", device_map="auto")


def test_a_device_map_that_nobody_can_read_is_refused_before_any_work(here, capsys):
    assert main([*FILL, "--device-map", "cuda:0"]) == 2
    said = capsys.readouterr().err
    assert "device_map is one of auto, balanced, balanced_low_0, sequential, or a JSON object" in said
    assert "got 'cuda:0'" in said and not (here / "runs").exists()
    with pytest.raises(ValueError, match=r"\[generator.broken\]: device_map is one of auto"):
        generator_settings("broken")
    with pytest.raises(ValueError, match="loaded by the server at http://127.0.0.1:1/v1: leave it out"):
        generator_settings("far")


def test_the_engine_gives_a_process_the_gpus_that_it_asks_for(here, capsys):
    assert [engine._gpu_processes(*asked) for asked in ((0, 1), (8, 1), (8, 2), (7, 2))] == [0, 8, 4, 3]
    assert main([*FILL, "--engine", "ray", "--gpus", "2", "--gpus-each", "4"]) == 2
    assert "a process of the engine takes 1 to 2 of its 2 GPUs, got 4" in capsys.readouterr().err
