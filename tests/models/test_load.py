"""A checkpoint whose parts lie on several devices: here some wait on disk until their turn. What is divided
over two GPUs is in test_fake_cuda.py."""

import json
import shutil
import sys
from contextlib import contextmanager
from types import SimpleNamespace

import numpy as np
import pyarrow.parquet as pq
import pytest
import torch
from transformers import BartModel, BertConfig, BertForMaskedLM, BertModel

from tests.helpers.forward import saved
from tests.helpers.profiles import INI
from tests.helpers.readings import encoder, framed
from tests.helpers.stand_ins import deberta, save_stand_in
from tests.helpers.toys import PAIRS, V, toy
from tests.helpers.writers import SAMPLES, tiny
from uetrust.cli.cli import main
from uetrust.core.checks import BadCheckpoint
from uetrust.core.settings import oracles, root
from uetrust.core.store import shard_provenance
from uetrust.generation import serve
from uetrust.generation.bank import read_bank
from uetrust.generation.decoding import Decoding
from uetrust.generation.local import generate_texts
from uetrust.models.classifiers import entailment_logits
from uetrust.models.encode import embed_texts
from uetrust.models.forward import score_tokens
from uetrust.models.load import batches, fingerprint, load_model, pad_ids, wrap_model
from uetrust.scoring import engine
from uetrust.scoring.generators import generator_settings
from uetrust.statistics.attention import attention_statistics
from uetrust.statistics.beams import ensemble_forward

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
GENERATE_AWAY = "generate B --model m --data toy.jsonl --endpoint http://127.0.0.1:1/v1"


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
    with pytest.raises(BadCheckpoint, match="lm_head.weight.*Name an existing device for every part"):
        load_model(folders / "llama", device_map={"model": "disk"})


def test_a_device_and_a_device_map_exclude_each_other(folders):
    with pytest.raises(ValueError, match="device = 'cpu' or device_map = 'auto': leave one of the two out"):
        load_model(folders / "llama", device="cpu", device_map="auto")


@pytest.fixture(scope="module")
def project(tmp_path_factory, folders):
    "A folder that looks like a checkout"
    d = tmp_path_factory.mktemp("project")
    (d / "nbs").mkdir()
    shutil.copytree(folders, d / "models")
    more = "\n[generator.broken]\nmodel = a\ndevice_map = cuda:0\n[generator.far]\nmodel = a\n"
    far = "endpoint = http://127.0.0.1:1/v1\ndevice_map = auto\n"
    away = "[generator.away]\nmodel = a\nendpoint = http://127.0.0.1:1/v1\n"
    ini = INI.replace("banks = toy--writer toy--box", "banks = toy--writer toy--away toy--box", 1)
    (d / "settings.ini").write_text(ini + more + far + away)
    SAMPLES[:2].assign(reference="w3").to_json(d / "toy.jsonl", orient="records", lines=True)
    SAMPLES[2:4].assign(reference="w3").to_json(d / "train.jsonl", orient="records", lines=True)
    return d


def bank_of(here, name="writer"):
    return here / "runs" / "small" / "banks" / f"toy--{name}"


def test_without_accelerate_the_remedy_is_named(folders, monkeypatch):
    monkeypatch.setitem(sys.modules, "accelerate", None)
    with pytest.raises(LookupError, match=r"pip install 'uetrust\[accelerate\]'"):
        load_model(folders / "llama", device_map="auto")


def test_a_device_map_that_nobody_can_read_is_refused_before_any_work(here, capsys):
    assert main([*FILL, "--device-map", "cuda:0"]) == 2
    message = capsys.readouterr().err
    assert "device_map is one of auto, balanced, balanced_low_0, sequential, or a JSON object" in message
    assert "got 'cuda:0'" in message and not bank_of(here).exists()
    with pytest.raises(ValueError, match=r"\[generator.broken\]: device_map is one of auto"):
        generator_settings("broken")
    with pytest.raises(ValueError, match="loaded by the server at http://127.0.0.1:1/v1: leave it out"):
        generator_settings("far")


def test_the_engine_gives_a_process_the_gpus_that_it_asks_for(here, capsys):
    sizes_of = (2, 0, 1), (2, 8, 1), (2, 8, 2), (2, 7, 2), (4, 2, 1)
    assert [engine._processes(*sizes) for sizes in sizes_of] == [2, 8, 4, 3, 4]


@pytest.mark.parametrize(
    "sizes,says",
    [
        ("--gpus 2 --gpus-each 4", "a process of the engine takes 1 to 2 of its 2 GPUs, got 4"),
        ("--gpus 2 --gpus-each 0", "a process of the engine takes 1 to 2 of its 2 GPUs, got 0"),
        ("--gpus-each 0", "0 GPUs for each process, and the engine has no GPUs: say how many (--gpus 8)"),
        ("--gpus-each 4", "4 GPUs for each process, and the engine has no GPUs: say how many (--gpus 8)"),
        ("--gpus=-1", "0 GPUs or more; got 2 workers and -1 GPUs"),
        ("--workers 0", "at least 1 process, and 0 GPUs or more; got 0 workers and 0 GPUs"),
    ],
)
def test_an_engine_that_cannot_be_is_refused_before_any_work(here, sizes, says, capsys):
    pytest.importorskip("ray", reason="the extra ray is not installed")
    assert main([*FILL, "--engine", "ray", *sizes.split()]) == 2
    assert says in capsys.readouterr().err and not bank_of(here).exists()


def test_every_gpu_of_a_cluster_that_is_started_here_has_a_processor(monkeypatch):
    "A task asks for both, so with two processors only two of eight GPUs would work"
    ray, options = (
        SimpleNamespace(is_initialized=lambda: False, init=lambda **given: options.update(given)),
        {},
    )
    monkeypatch.delenv("RAY_ADDRESS", raising=False)
    assert engine._started(ray, engine._processes(2, 8, 1), 8)
    assert (options["num_cpus"], options["num_gpus"]) == (8, 8)


# The options of the commands

NLI = root() / "data" / "models" / "tiny-nli"
GENERATE = "--data toy.jsonl --samples 2 --max-new-tokens 6".split()


def command(*words):
    assert main([str(word) for word in words]) == 0


def generated(folder, model, *where):
    "Files of texts and of token statistics by `uetrust generate` and `uetrust read`"
    command("generate", folder, "--model", model, *GENERATE, *where)
    command("read", folder, "--model", model, "--data", "toy.jsonl", "--read", "hidden", *where)
    return sorted(path for path in folder.rglob("*.*") if path.is_file() and path.name[0] != ".")


def test_generate_and_read_take_a_device_map_and_leave_the_same_bytes(here, folders):
    whole, auto = (
        generated(here / name, folders / "llama", *where)
        for name, where in (("whole", ["--device", "cpu"]), ("auto", ["--device-map", "auto"]))
    )
    assert len(whole) == 4 and [path.read_bytes() for path in whole] == [path.read_bytes() for path in auto]


@pytest.mark.filterwarnings("ignore:The following device_map keys:UserWarning")
@pytest.mark.parametrize("name", DEVICES)
def test_generate_and_read_from_parts_on_disk_as_from_the_whole_checkpoint(here, folders, name):
    whole = generated(here / f"{name}-whole", folders / name, "--device", "cpu")
    parts = generated(here / f"{name}-parts", folders / name, "--device-map", json.dumps(DEVICES[name]))
    for one, other in zip(whole, parts, strict=True):
        if one.suffix == ".parquet":
            assert pq.read_table(one).equals(pq.read_table(other))
            devices = [shard_provenance(path)["made_with"]["device"] for path in (one, other)]
            assert devices == ["cpu", "cpu disk"]


@pytest.mark.filterwarnings("ignore:The following device_map keys:UserWarning")
def test_what_settings_ini_serves_here_follows_the_options_of_fill(here, folders, monkeypatch):
    loaded = []
    monkeypatch.setattr(
        serve, "load_model", lambda *a, **kw: loaded.append(load_model(*a, **kw)) or loaded[-1]
    )
    fill = ["fill", "toy--box", "--profile", "small", "--stages", "texts"]
    command(*fill, "--device-map", json.dumps(DEVICES["llama"]))
    command(*fill, "--no-resume", "--device", "cpu", "--dtype", "bfloat16")
    placed = [(model.devices, model.dtype) for model in loaded]
    assert placed == [("cpu disk", torch.float32), ("cpu", torch.bfloat16)]


def test_serve_takes_a_device_map(folders, monkeypatch):
    served = []

    @contextmanager
    def running_server(model, *given):
        served.append(model)
        yield "http://127.0.0.1:1/v1"

    class Interrupted:
        def wait(self):
            raise KeyboardInterrupt

    monkeypatch.setattr(serve, "running_server", running_server)
    monkeypatch.setattr(serve, "threading", SimpleNamespace(Event=Interrupted))
    where = "--device-map", json.dumps(DEVICES["llama"]), "--dtype", "bfloat16"
    command("serve", folders / "llama", "--port", "0", *where)
    assert (served[0].devices, served[0].dtype) == ("cpu disk", torch.bfloat16)


def test_the_number_format_is_that_of_the_command(here, folders, tmp_path):
    generated(tmp_path / "half", folders / "llama", "--dtype", "bfloat16")
    command("compare", tmp_path / "half", "--nli", NLI, "--dtype", "bfloat16", "--device", "cpu")
    made = [shard_provenance(path) for path in (tmp_path / "half").rglob("*.parquet")]
    assert len(made) == 4 and {(about.get("settings") or about)["dtype"] for about in made} == {"bfloat16"}


@pytest.mark.parametrize(
    "line,says",
    [
        (f"{GENERATE_AWAY} --device-map auto --dtype float32", "--dtype --device-map: the server at http://"),
        ("generate B --model M --data toy.jsonl --device cpu --device-map auto", "leave one of the two out"),
        ("read B --model M --data toy.jsonl --device-map cuda:0", "device_map is one of auto, balanced"),
        ("generate B --model M --data toy.jsonl --device tpu", "nothing can be computed on 'tpu' ("),
        ("compare B --nli M --device cuda:7", "); there are cpu"),
        ("compare B --nli M --device-map auto", "Unknown option: --device-map"),
        ("fill toy--writer --profile small --gpus 2", "--gpus: the engine local is this process alone"),
        ("fill toy--away --profile small --device-map auto", "loaded by the server at http://127.0.0.1:1/v1"),
        (
            "fill toy--away --profile small --stages texts --device cpu",
            "the stages texts of toy--away load no",
        ),
        (
            "fill toy--writer --profile small --stages metrics --device-map auto",
            "device_map: the stages metrics of toy--writer load no model that would use it",
        ),
    ],
)
def test_an_option_without_effect_is_refused_before_any_work(here, folders, tmp_path, line, says, capsys):
    bank = tmp_path / "bank"
    command("generate", bank, "--model", folders / "llama", *GENERATE)
    capsys.readouterr()
    names = dict(B=str(bank), M=str(folders / "llama"))
    assert (
        main([names.get(word, word) for word in line.split()] + ["--no-resume"] * ("generate" in line)) == 2
    )
    assert says in capsys.readouterr().err
    assert len(read_bank(bank)) and not any(bank_of(here, name).exists() for name in ("writer", "away"))


def test_a_bare_encoder_is_the_same_model_whenever_it_is_loaded(tmp_path):
    BertForMaskedLM(
        BertConfig(
            vocab_size=60, hidden_size=16, num_hidden_layers=1, num_attention_heads=2, intermediate_size=32
        )
    ).save_pretrained(tmp_path)
    encoder().tokenizer.save_pretrained(tmp_path)
    assert fingerprint(load_model(tmp_path, device="cpu")) == fingerprint(
        load_model(tmp_path, device="cpu")
    ), "a part that is missing from the file must not be drawn at random"


def test_batches_cover_everything_within_the_budget():
    rng = np.random.default_rng(0)
    for _ in range(50):
        lengths, rows = rng.integers(1, 40, 30).tolist(), rng.integers(1, 5, 30).tolist()
        found = batches(lengths, 100, rows)
        assert sorted(i for batch in found for i in batch) == list(range(30))
        assert all(
            len(batch) == 1 or max(lengths[i] for i in batch) * sum(rows[i] for i in batch) <= 100
            for batch in found
        )
        assert all(lengths[previous[-1]] >= lengths[batch[0]] for previous, batch in zip(found, found[1:]))
    assert batches([], 10) == []


def test_masks_have_the_shape_of_the_ids():
    for left in (False, True):
        ids, mask = pad_ids([[4, 5], [6]], left=left)
        assert ids.shape == mask.shape == (2, 2) and mask.dtype == torch.long and (ids * mask == ids).all()


def test_loading_refuses(tmp_path):
    model, encoder = (
        toy("bart", torch.float32),
        BertModel(
            BertConfig(
                vocab_size=V, hidden_size=16, num_hidden_layers=1, num_attention_heads=2, intermediate_size=16
            )
        ),
    )
    with pytest.raises(FileNotFoundError, match="no model folder"):
        load_model(tmp_path / "nowhere")
    (tmp_path / "empty").mkdir()
    with pytest.raises(FileNotFoundError, match="no config.json"):
        load_model(tmp_path / "empty")
    saved(tmp_path / "pickled", model.model, model.tokenizer)
    (tmp_path / "pickled" / "model.safetensors").unlink()
    torch.save(model.model.state_dict(), tmp_path / "pickled" / "pytorch_model.bin")
    with pytest.raises(ValueError, match="Pickled weights can run code"):
        load_model(tmp_path / "pickled")
    with pytest.raises(ValueError, match="has no tokenizer"):
        load_model(saved(tmp_path / "mute", model.model))
    with pytest.raises(OSError, match="it is no folder here, and HF_HUB_OFFLINE is set"):
        load_model("nobody/nothing-of-that-name")
    loaded = load_model(saved(tmp_path / "encoder", encoder, model.tokenizer))
    with pytest.raises(ValueError, match="is an encoder and gives no token probabilities"):
        score_tokens(loaded, PAIRS)


def test_a_missing_weight_is_not_drawn_at_random(tmp_path):
    from safetensors.torch import load_file, save_file

    model = toy("bart", torch.float32)
    path = saved(tmp_path, model.model, model.tokenizer) / "model.safetensors"
    weights = load_file(path)
    save_file(
        {name: weight for name, weight in weights.items() if "fc1" not in name},
        path,
        metadata={"format": "pt"},
    )
    with pytest.raises(ValueError, match="has no weights of BartForConditionalGeneration.*fc1"):
        load_model(tmp_path)


def test_a_bare_bart_is_a_language_model(tmp_path):
    "facebook/bart-large is published as a BartModel; its head is its embedding."
    model = toy("bart", torch.float32)
    saved(tmp_path, BartModel(model.model.config), model.tokenizer)
    assert load_model(tmp_path).kind == "seq2seq"


def test_an_unknown_step_to_the_logits_is_an_error():
    model = toy("llama")
    model.model.lm_head.register_forward_hook(
        lambda layer, inputs, logits: logits + inputs[0].sum()
    )  # a hook is part of the head, so it is seen
    assert wrap_model(model.model, model.tokenizer).kind == "causal"
    plain = model.model.forward
    model.model.forward = lambda *args, **options: (lambda out: out.__class__(logits=out.logits * 2))(
        plain(*args, **options)
    )
    with pytest.raises(ValueError, match="off by"):
        wrap_model(model.model, model.tokenizer)


def test_a_roberta_without_a_limit_in_its_tokenizer_reads_as_many_tokens_as_it_has_positions():
    "RoBERTa's 514 positions hold 512 tokens; tokenizers without model_max_length do not say so"
    if oracles() is None:
        pytest.skip("UETRUST_ORACLES is not at hand")
    model = load_model(oracles() / "metrics/models/tiny_roberta")
    assert model.text_config.max_position_embeddings == 514 and model.positions == model.window == 512
    model.tokenizer.model_max_length = int(1e30)
    assert model.window == 512
    (vector,), (cut,) = embed_texts(model, ["rain fell on the hall " * 400])
    assert np.isfinite(vector).all() and cut > 0


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_a_network_whose_biases_are_made_as_float32_reads_at_half_precision(tmp_path, dtype):
    folder = save_stand_in(deberta, tmp_path / "deberta")
    whole, half = (load_model(folder, dtype=name) for name in ("float32", dtype))
    assert {str(weight.dtype) for weight in half.model.parameters()} == {f"torch.{dtype}"}
    pairs = [("It rains.", "Rain falls."), ("Snow.", "Sun.")]
    found, expected = (entailment_logits(model, pairs)[0] for model in (half, whole))
    assert np.allclose(found, expected, atol=8 * torch.finfo(getattr(torch, dtype)).eps)
