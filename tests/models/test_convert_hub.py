"""Pickled checkpoints of the model hub: `uetrust convert ID` writes safetensors, and a loader says so."""

import json
import os
import subprocess
import sys
import threading
from contextlib import contextmanager
from functools import partial
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file

from tests.helpers import stand_ins

COMMIT = "0a1b2c3d" * 5


class Bomb:
    def __reduce__(self):
        return os.system, ("touch exploded",)


class Hub(BaseHTTPRequestHandler):
    "A hub with the folders of one directory, as ORG--NAME"

    def __init__(self, root, *given):
        self.root = root
        super().__init__(*given)

    def answer(self):
        self.server.paths.append(self.path)
        parts = self.path.partition("?")[0].strip("/").split("/")
        api = parts[0] == "api"
        folder = self.root / "--".join(parts[2:4] if api else parts[:2])
        file = folder / "/".join(parts[4:])
        if not folder.is_dir() or not (api or file.is_file()):
            code = "RepoNotFound" if not folder.is_dir() else "EntryNotFound"
            return self.send(404, b"", {"X-Error-Code": code, "X-Repo-Commit": COMMIT})
        files = sorted(folder.iterdir())
        siblings = [dict(rfilename=path.name) for path in files]
        about = dict(id="/".join(parts[2:4]), sha=COMMIT, siblings=siblings, private=False, tags=[])
        if "tree" in parts:
            about = [dict(type="file", path=f.name, size=f.stat().st_size, oid=f.name) for f in files]
        content = json.dumps(about).encode() if api else file.read_bytes()
        self.send(200, content, {"ETag": f'"{hash(content):x}"', "X-Repo-Commit": COMMIT})

    def send(self, code, content, headers):
        self.send_response(code)
        for name, value in (headers | {"Content-Length": str(len(content))}).items():
            self.send_header(name, value)
        self.end_headers()
        if self.command == "GET":
            self.wfile.write(content)

    do_GET = do_HEAD = answer

    def log_message(self, *given):
        pass


@contextmanager
def hub_of(folder, tmp_path):
    "Environment of a process that asks this hub, and the paths it asked for."
    hub = ThreadingHTTPServer(("127.0.0.1", 0), partial(Hub, folder))
    hub.paths = []
    threading.Thread(target=hub.serve_forever, daemon=True).start()
    address = f"http://127.0.0.1:{hub.server_port}"
    here = dict(HF_ENDPOINT=address, HF_HUB_OFFLINE="0", HF_HOME=str(tmp_path / "hf"), NO_PROXY="127.0.0.1")
    try:
        yield os.environ | here | dict(UETRUST_CACHE=str(tmp_path / "cache"), UETRUST_OFFLINE="0"), hub.paths
    finally:
        hub.shutdown()
        hub.server_close()


@pytest.fixture(scope="module")
def published(tmp_path_factory):
    "A tiny network as one pickle and as two, one that would run a program, and one as safetensors."
    root, shipped = tmp_path_factory.mktemp("hub"), stand_ins.shipped("bart")
    weights = load_file(shipped / "model.safetensors")
    names = sorted(weights)
    halves = {f"pytorch_model-0000{i}-of-00002.bin": names[i - 1 :: 2] for i in (1, 2)}
    parts = {
        "org--whole": {"pytorch_model.bin": weights},
        "org--parts": {file: {name: weights[name] for name in some} for file, some in halves.items()},
        "org--bomb": {"pytorch_model.bin": {"w": Bomb()}},
        "org--safe": {},
    }
    for name, files in parts.items():
        (root / name).mkdir()
        for path in shipped.iterdir():
            if path.suffix != ".safetensors" or name == "org--safe":
                (root / name / path.name).write_bytes(path.read_bytes())
        for file, content in files.items():
            torch.save(content, root / name / file)
    return root


def uetrust(env, tmp_path, *words):
    main = [Path(sys.executable).with_name("uetrust"), *map(str, words)]
    done = subprocess.run(main, env=env, cwd=tmp_path, capture_output=True, text=True)
    return done.returncode, done.stdout, done.stderr


@pytest.mark.parametrize("name", ["whole", "parts"])
def test_an_id_becomes_a_folder_that_is_loaded(published, tmp_path, name):
    with hub_of(published, tmp_path) as (env, _):
        code, said, error = uetrust(env, tmp_path, "convert", f"org/{name}")
        assert code == 0, error
        folder = tmp_path / "cache" / "converted" / f"org--{name}"
        assert f"write {folder} in place of org/{name}" in said
        found, wanted = (load_file(f / "model.safetensors") for f in (folder, stand_ins.shipped("bart")))
        assert found.keys() >= wanted.keys()
        assert all(torch.equal(found[weight], wanted[weight]) for weight in wanted)
        code, _, error = uetrust(env, tmp_path, "convert", f"org/{name}")
        assert code == 2 and "is there already" in error


def test_a_pickle_that_would_run_a_program_is_refused_and_not_run(published, tmp_path):
    with hub_of(published, tmp_path) as (env, _):
        code, said, error = uetrust(env, tmp_path, "convert", "org/bomb", "out")
    assert code == 2 and "would call posix.system, so it is refused" in error and "Traceback" not in error
    assert not (tmp_path / "exploded").exists() and not (tmp_path / "out").exists()


def test_what_cannot_be_converted_is_said_in_one_line(published, tmp_path):
    with hub_of(published, tmp_path) as (env, _):
        for words, expected in (
            (["org/nobody"], "org/nobody cannot be fetched"),
            (["org/safe"], "org/safe has no pytorch_model.bin on the hub"),
            (["org/whole", "a", "b"], "--out: an id of the hub needs at most the folder to write"),
            (["bleurt", "a"], "needs the published file and the folder to write"),
        ):
            code, _, error = uetrust(env, tmp_path, "convert", *words)
            assert code == 2 and expected in error and error.count("\n") == 1, error
        code, _, error = uetrust(env | dict(UETRUST_OFFLINE="1"), tmp_path, "convert", "org/whole")
    assert code == 2 and "org/whole cannot be fetched: UETRUST_OFFLINE=1" in error


def test_a_loader_names_the_remedy_and_asks_nobody_to_convert(published, tmp_path):
    with hub_of(published, tmp_path) as (env, paths):
        code, _, error = uetrust(env, tmp_path, "serve", "org/whole", "--port", "0")
    assert code == 2 and "it needs `uetrust convert org/whole`: the hub has pickled weights only" in error
    assert not [path for path in paths if "discussions" in path or ".bin" in path]
