"""Checkpoints, banks and requests that are damaged or absurd: `generate`, `read`, `compare`, `fill`."""

import json
import shutil
import struct
from pathlib import Path

from tests.faults.harness import fault

REPOSITORY = Path(__file__).resolve().parents[2]
MODELS = REPOSITORY / "data" / "models"
SLOW = 60  # Seconds for what loads a model
GENERATE = "generate bank --data bulletin:test:2 --samples 1 --max-new-tokens 4 --model"
READ = "read bank --read conditional --data bulletin:test:2 --model"


def generate(folder, name="tiny-llama"):
    "A copy of a checkpoint, and the command that generates with it."
    shutil.copytree(MODELS / name, folder / "model")
    return [*GENERATE.split(), "model"]


def generate_with(folder, name, text):
    "The same with another text in one file of the checkpoint."
    command = generate(folder)
    (folder / "model" / name).write_text(text)
    return command


def config(folder, **changes):
    command, path = generate(folder), folder / "model" / "config.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | changes))
    return command


@fault("right", limit=SLOW)
def a_whole_checkpoint(folder):
    return generate(folder)


WEIGHTS = {
    "cut in half": lambda data: data[: len(data) // 2],
    "cut in the header": lambda data: data[:100],
    "empty": lambda data: b"",
    "eight bytes": lambda data: data[:8],
    "header of 2^62 bytes": lambda data: struct.pack("<Q", 2**62) + data[8:],
    "header of 0 bytes": lambda data: struct.pack("<Q", 0) + data[8:],
    "header no JSON": lambda data: data[:8] + b"x" * (len(data) - 8),
    "a web page": lambda data: b"<!DOCTYPE html><html>not found</html>",
    "longer than it says": lambda data: data + b"more",
    "a pointer": lambda data: b"version https://git-lfs.github.com/spec/v1\noid sha256:00\nsize 9\n",
}


@fault("error", "model.safetensors", "damaged", "Copy the checkpoint again", cases=WEIGHTS)
def weights(folder, damage):
    command, path = generate(folder), folder / "model" / "model.safetensors"
    path.write_bytes(damage(path.read_bytes()))
    return command


def _retensored(folder, change):
    from safetensors.numpy import load_file, save_file

    command, path = generate(folder), folder / "model" / "model.safetensors"
    tensors = load_file(path)
    change(tensors, max(tensors, key=lambda name: tensors[name].ndim))
    save_file(tensors, path, metadata={"format": "pt"})
    return command


def drop(tensors, name):
    del tensors[name]


def cut(tensors, name):
    tensors[name] = tensors[name][:-1].copy()


def flat(tensors, name):
    tensors[name] = tensors[name].reshape(-1)


@fault(
    "error",
    "model",
    cases={"missing": drop, "cut": cut, "flat": flat, "all missing": lambda t, n: t.clear()},
    limit=SLOW,
)
def a_tensor(folder, change):
    return _retensored(folder, change)


CONFIGS = {
    "no JSON": "{",
    "empty": "",
    "a list": "[]",
    "null": "null",
    "an empty object": "{}",
    "twice deep": "[" * 2000,
}


@fault("error", "config.json", "Copy the checkpoint again", cases=CONFIGS)
def a_config_that_is(folder, text):
    return generate_with(folder, "config.json", text)


KEYS = {
    "unknown architecture": dict(model_type="no_such_model"),
    "model_type a number": dict(model_type=3),
    "hidden_size text": dict(hidden_size="big"),
    "hidden_size 0": dict(hidden_size=0),
    "hidden_size 10^9": dict(hidden_size=10**9),
    "another width": dict(hidden_size=64),
    "layers negative": dict(num_hidden_layers=-1),
    "more layers": dict(num_hidden_layers=9),
    "heads 0": dict(num_attention_heads=0),
    "another vocabulary": dict(vocab_size=7),
    "activation unknown": dict(hidden_act="wobble"),
    "code of its own": dict(auto_map={"AutoModel": "evil.Model"}),
    "attention kernel of the hub": dict(attn_implementation="kernels-community/flash-attn"),
    "attention unknown": dict(_attn_implementation="no such/one"),
    "dtype unknown": dict(dtype="float99"),
}


@fault("error", "model", cases=KEYS, limit=SLOW)
def config_with(folder, changes):
    return config(folder, **changes)


@fault(
    "error",
    "model",
    "tokenizer",
    cases={"empty": "", "a list": "[]", "no JSON": "{", "empty object": "{}"},
    limit=SLOW,
)
def a_tokenizer_that_is(folder, text):
    return generate_with(folder, "tokenizer.json", text)


@fault("error", "model", "tokenizer")
def no_tokenizer(folder):
    command = generate(folder)
    for path in (folder / "model").glob("tokenizer*"):
        path.unlink()
    return command


TEMPLATES = {
    "long loop": "{% for i in range(10**9) %}x{% endfor %}",
    "loop in a loop": "{% for i in range(99999) %}{% for j in range(99999) %}{% endfor %}{% endfor %}",
    "loops that write": "{% for i in range(9999) %}{% for j in range(9999) %}x{% endfor %}{% endfor %}",
    "endless text": "{{ 'a' * 10**7 }}",
    "half": "{% for i in",
    "unknown filter": "{{ messages | frobnicate }}",
    "attribute of the system": "{{ ''.__class__.__mro__[1].__subclasses__()[0].x.y }}",
    "raises": "{{ raise_exception('never') }}",
    "division by zero": "{{ 1 / 0 }}",
}


@fault("error", "model", "chat template", cases=TEMPLATES, limit=SLOW)
def a_chat_template_with(folder, template):
    return generate_with(folder, "chat_template.jinja", template)


@fault("error", "Pickled", ".safetensors")
def pickled_weights(folder):
    command = generate(folder)
    (folder / "model" / "model.safetensors").rename(folder / "model" / "pytorch_model.bin")
    return command


@fault("error", "nowhere/x/y")
def a_model_from_no_folder(folder):
    return [*GENERATE.split(), "nowhere/x/y"]


@fault("error", "config.json")
def a_model_from_an_empty_folder(folder):
    return [*GENERATE.split(), "."]


@fault("error", "cannot write", limit=SLOW)
def an_encoder_that_should_write(folder):
    return generate(folder, "tiny-encoder")


@fault("error", "memory", memory=6 * 2**30, limit=SLOW)
def a_model_larger_than_the_memory(folder):
    return config(folder, vocab_size=10**8)


ABSURD = {
    "10^11 bulletins": ("--data bulletin:test:100000000000", "bulletin"),
    "10^9 samples": ("--samples 1000000000", "samples"),
    "10^6 tokens of 10^6 samples": ("--samples 1000000 --max-new-tokens 1000000", "samples"),
    "no batch": ("--batch 0", "batch"),
    "a batch of less than none": ("--batch -3", "batch"),
    "fewer samples than none": ("--samples -1", "samples"),
    "no tokens": ("--max-new-tokens 0", "max_new_tokens"),
    "no bulletins": ("--data bulletin:test:0", "bulletin"),
}
for name, (words, says) in ABSURD.items():

    @fault("error", says, cases={name: words})
    def asked_for(folder, words):
        return [*GENERATE.split(), str(MODELS / "tiny-llama"), *words.split()]


@fault("right", limit=SLOW)
def a_batch_larger_than_the_data(folder):
    return [*generate(folder), "--batch", "1000000000"]


# Banks


def bank(folder, size=2):
    "A small bank that is made without a model, from a file of texts."
    from uetrust.data.datasets import load_samples
    from uetrust.generation.bank import bank_provenance, bank_row, fill_bank

    samples = load_samples("bulletin:test:3")
    about = bank_provenance("bulletin", "echo", "echo", "1", {"seed": 1}, dict(greedy=1, sample=0, beam=0))

    def make(part):
        return [bank_row(name, "greedy", 0, "a text", [5, 6], 0, "stop") for name in part["id"]]

    fill_bank(folder / "bank", samples, about, make, size, progress=False)
    return folder / "bank"


MANIFESTS = {
    "size 0": lambda found: found | dict(size=0),
    "size negative": lambda found: found | dict(size=-2),
    "size true": lambda found: found | dict(size=True),
    "n text": lambda found: found | dict(n="3"),
    "n a fraction": lambda found: found | dict(n=3.5),
    "n 0": lambda found: found | dict(n=0),
    "a list": lambda found: [found],
    "an empty object": lambda found: {},
    "null": lambda found: None,
    "about text": lambda found: found | dict(about="x"),
    "about null": lambda found: found | dict(about=None),
    "without n": lambda found: {key: found[key] for key in ("about", "size")},
    "without about": lambda found: {key: found[key] for key in ("n", "size")},
    "without settings": lambda found: found | dict(about={}),
    "another model": lambda found: found | dict(about=found["about"] | dict(model="other")),
    "n too large": lambda found: found | dict(n=9),
}
COMMANDS = {
    "read": [*READ.split(), str(MODELS / "tiny-llama")],
    "compare": ["compare", "bank", "--nli", str(MODELS / "tiny-nli")],
    "score": ["score", "bank"],
    "generate": [*GENERATE.split(), str(MODELS / "tiny-llama")],
}


for name, command in COMMANDS.items():

    @fault(
        "error",
        "bank",
        cases={f"for {name} with {damage}": change for damage, change in MANIFESTS.items()},
        limit=SLOW,
    )
    def bank_json(folder, change, command=command):
        path = bank(folder) / "bank.json"
        path.write_text(json.dumps(change(json.loads(path.read_text()))))
        return command

    @fault(
        "error",
        "bank.json",
        cases={
            f"for {name}, {what}": data
            for what, data in {"empty": b"", "cut": b'{"about"', "binary": b"\xff\xfe\0"}.items()
        },
        limit=SLOW,
    )
    def bank_json_bytes(folder, data, command=command):
        (bank(folder) / "bank.json").write_bytes(data)
        return command


SHARDS = {
    "cut": lambda data: data[: len(data) // 2],
    "empty": lambda data: b"",
    "text": lambda data: b"no parquet",
    "a flipped bit": lambda data: data[:60] + bytes([data[60] ^ 1]) + data[61:],
}
for name in ("compare", "score"):

    @fault(
        "error",
        "00000.parquet",
        "Rebuild",
        cases={f"for {name}, {what}": change for what, change in SHARDS.items()},
        limit=SLOW,
    )
    def a_shard(folder, change, command=COMMANDS[name]):
        path = bank(folder) / "00000.parquet"
        path.write_bytes(change(path.read_bytes()))
        return command

    @fault("error", "00001.parquet", cases={f"for {name}": None}, limit=SLOW)
    def a_missing_shard(folder, _, command=COMMANDS[name]):
        (bank(folder) / "00001.parquet").unlink()
        return command

    @fault("error", "00000.parquet", "shard", cases={f"for {name}": None}, limit=SLOW)
    def a_shard_in_the_place_of_another(folder, _, command=COMMANDS[name]):
        place = bank(folder)
        shutil.copy(place / "00001.parquet", place / "00000.parquet")
        return command

    @fault("error", "foreign.parquet", cases={f"for {name}": None}, limit=SLOW)
    def a_foreign_file(folder, _, command=COMMANDS[name]):
        place = bank(folder)
        shutil.copy(place / "00001.parquet", place / "foreign.parquet")
        return command


for name in ("read", "compare", "score"):

    @fault("error", "bank", "holds no bank", cases={name: None})
    def an_empty_folder_for(folder, _, command=COMMANDS[name]):
        (folder / "bank").mkdir()
        return command


@fault("error", "bank", cases={name: name for name in ("read", "compare", "score", "generate")}, limit=SLOW)
def a_file_in_the_place_of_the_bank_for(folder, name):
    (folder / "bank").write_text("no folder")
    return COMMANDS[name]


@fault("error", "head.safetensors", "damaged", limit=SLOW)
def a_trained_head_that_is_cut(folder):
    (folder / "head.safetensors").write_bytes(b"\x10\0\0\0\0\0\0\0{}")
    (folder / "mine.jsonl").write_text('{"id": "a", "source": "It rained.", "hypothesis": "Rain fell."}\n')
    model = f"alignscore={MODELS}/tiny-encoder,{folder}/head.safetensors"
    return ["score", "mine.jsonl", "--metric", "alignscore", "--model", model]
