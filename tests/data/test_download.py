"""Public files: the right bytes from cache, mirror or network, or an error that names the remedy."""

import copyreg
import http.server
import os
import pickle
import socket
import threading
import types

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.helpers.loaders import GOOD, ICE_FILE, NAME, real, sha
from uetrust.core.settings import mirror
from uetrust.data import download as data
from uetrust.data.download import (
    DataNotAtHand,
    WrongHash,
    fetch_file,
    has_file,
    hub_dataset,
    hub_problem,
    load_plain_pickle,
    sources,
)


# The registry
def test_every_address_is_pinned_to_a_commit_and_every_file_has_a_licence_note():
    files = sources()
    assert (
        files["url"].str.fullmatch(r"https://raw\.githubusercontent\.com/[^/]+/[^/]+/[0-9a-f]{40}/.+").all()
    )
    assert files["sha256"].is_unique
    assert files["url"].is_unique
    assert (files["bytes"] > 0).all()
    assert files["licence"].str.len().gt(2).all()
    assert set(files["in_mirror"]) == {"yes", "no"}


def test_a_changed_copy_does_not_change_the_registry():
    mine = sources()
    mine.loc[ICE_FILE, "sha256"] = "x"
    assert len(sources().loc[ICE_FILE, "sha256"]) == 64


@real
def test_the_mirror_holds_what_the_registry_says():
    files = sources()
    assert {name: (mirror() / name).is_file() for name in files.index} == files["in_mirror"].eq(
        "yes"
    ).to_dict()
    assert [fetch_file(name).stat().st_size for name in files.index[files["in_mirror"] == "yes"]] == files[
        "bytes"
    ][files["in_mirror"] == "yes"].tolist()


def test_the_cache_comes_before_the_mirror(world):
    in_mirror = world.put("mirror", GOOD)
    assert fetch_file(NAME) == in_mirror and world.files() == [f"mirror/{NAME}"]  # nothing is copied
    in_cache = world.put("cache", GOOD)
    assert fetch_file(NAME) == in_cache


@pytest.mark.parametrize("where", ["cache", "mirror"])
@pytest.mark.parametrize(
    "damaged,says",
    [(GOOD[:-2] + b"1\n", "damaged or another version"), (GOOD[:-4], "cut short"), (b"", "cut short")],
)
def test_damaged_bytes_are_an_error_with_both_hashes(world, where, damaged, says):
    world.put("mirror", GOOD)
    path = world.put(where, damaged)
    with pytest.raises(WrongHash) as e:
        fetch_file(NAME)
    for part in (
        NAME,
        str(path),
        "http://127.0.0.1:9/scores.csv",
        sha(damaged),
        sha(GOOD),
        says,
        "delete it and fetch it again",
    ):
        assert part in str(e.value)
    assert path.read_bytes() == damaged and has_file(NAME)  # not repaired in silence


def test_a_missing_file_offline_names_file_address_and_remedy(world):
    assert not has_file(NAME)
    with pytest.raises(DataNotAtHand) as e:
        fetch_file(NAME)
    for part in (
        "data not at hand",
        NAME,
        "http://127.0.0.1:9/scores.csv",
        "UETRUST_MIRROR",
        "UETRUST_OFFLINE=1",
        str(world.path / "cache" / NAME),
    ):
        assert part in str(e.value)
    assert isinstance(e.value, FileNotFoundError)
    assert world.files() == []
    assert not (world.path / "cache").exists()


def test_a_mirror_that_is_no_folder_is_said_to_be_none(world, monkeypatch):
    monkeypatch.setenv("UETRUST_MIRROR", str(world.path / "nowhere"))
    with pytest.raises(DataNotAtHand, match="UETRUST_MIRROR is not a folder"):
        fetch_file(NAME)


def test_unknown_names_are_answered_with_near_ones():
    for function in (fetch_file, has_file, data.find_file):
        with pytest.raises(ValueError, match="summeval/data.pkl"):
            function("summeval/data.pkle")
    with pytest.raises(ValueError, match="no hash to check"):
        fetch_file("aeslc/test.jsonl.gz")


def test_the_user_cache_is_used_when_no_folder_is_named(monkeypatch):
    import pooch

    monkeypatch.delenv("UETRUST_CACHE", raising=False)
    assert data.cache_dir() == pooch.os_cache("uetrust")


@pytest.fixture
def server(world, monkeypatch):
    "A server on this machine that gives `content` under /scores.csv, and counts its visitors"
    state = types.SimpleNamespace(content=GOOD, promise=None, status=200, hits=0)

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self):
            state.hits += 1
            self.send_response(state.status)
            self.send_header("Content-Length", str(state.promise or len(state.content)))
            self.end_headers()
            self.wfile.write(state.content)

        def log_message(self, *a):
            pass

    http_server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=http_server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True).start()
    world.reg.loc[NAME, "url"] = f"http://127.0.0.1:{http_server.server_port}/scores.csv"
    monkeypatch.setenv("UETRUST_OFFLINE", "0")
    yield state
    http_server.shutdown()
    http_server.server_close()


def test_the_network_comes_last_and_fills_the_cache(world, server, monkeypatch):
    path = fetch_file(NAME)
    assert path == world.path / "cache" / NAME and path.read_bytes() == GOOD and server.hits == 1
    assert fetch_file(NAME) == path and server.hits == 1
    path.unlink()
    monkeypatch.setenv("UETRUST_OFFLINE", "1")
    with pytest.raises(DataNotAtHand):
        fetch_file(NAME)
    assert server.hits == 1


@pytest.mark.parametrize(
    "how,error,says",
    [
        (dict(content=GOOD[:-2] + b"1\n"), WrongHash, "damaged or another version"),
        (dict(content=GOOD[:-4]), WrongHash, "cut short"),
        (dict(promise=10**4), DataNotAtHand, "the download failed"),
        (dict(status=404), DataNotAtHand, "404"),
    ],
)
def test_a_failed_download_leaves_nothing(world, server, how, error, says):
    vars(server).update(how)
    with pytest.raises(error, match=says) as e:
        fetch_file(NAME)
    assert NAME in str(e.value) and world.reg.loc[NAME, "url"] in str(e.value) and world.files() == []


def test_nobody_listening_is_data_not_at_hand(world, monkeypatch):
    monkeypatch.setenv("UETRUST_OFFLINE", "0")
    with pytest.raises(DataNotAtHand, match="the download failed"):
        fetch_file(NAME)


# Pickles
class Bomb:
    def __init__(self, path):
        self.path = str(path)

    def __reduce__(self):
        return os.mkdir, (self.path,)


def bombs(target):
    for protocol in range(6):
        yield f"reduce{protocol}", pickle.dumps({"scores": [1, Bomb(target)]}, protocol)
    yield "inst", b"(S" + repr(str(target)).encode() + b"\nios\nmkdir\n."
    yield "persid", b"Pwhatever\n."
    yield "unknown opcode", b"\x80\x04\xff."
    yield "cut short", pickle.dumps([1.0, 2.0])[:-3]
    yield "empty", b""


@pytest.mark.parametrize("scanned", [True, False], ids=["scan", "unpickler alone"])
def test_nothing_in_a_pickle_is_run(tmp_path, scanned, monkeypatch):
    if not scanned:
        monkeypatch.setattr(data, "PICKLE_CODE", set())
    for what, content in bombs(tmp_path / "boom"):
        (tmp_path / "x.pkl").write_bytes(content)
        with pytest.raises(pickle.UnpicklingError, match="not a pickle of plain data") as e:
            load_plain_pickle(tmp_path / "x.pkl")
        assert "x.pkl" in str(e.value) and not (tmp_path / "boom").exists(), what


def test_registered_extensions_are_refused(tmp_path):
    "An extension code in the cache of `copyreg` never reaches find_class: only the scan sees it."
    copyreg.add_extension("os", "getcwd", 240)
    try:
        (tmp_path / "x.pkl").write_bytes(pickle.dumps(os.getcwd, 2).replace(b"cposix\ngetcwd\n", b"\x82\xf0"))
        copyreg._extension_cache[240] = os.getcwd
        with pytest.raises(pickle.UnpicklingError, match="EXT1"):
            load_plain_pickle(tmp_path / "x.pkl")
    finally:
        copyreg._extension_cache.pop(240, None)
        copyreg.remove_extension("os", "getcwd", 240)


plain = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
    lambda x: st.lists(x) | st.dictionaries(st.text(), x) | st.tuples(x, x),
    max_leaves=6,
)


@given(plain, st.integers(0, 5))
def test_plain_data_comes_back(tmp_path_factory, x, protocol):
    path = tmp_path_factory.getbasetemp() / "plain.pkl"
    path.write_bytes(pickle.dumps(x, protocol))
    assert load_plain_pickle(path) == x


def test_a_hub_is_asked_where_the_environment_says(monkeypatch):
    "Its own address, a mirror's or a proxy's; a port that is closed, and one where nothing ever answers."
    for name in ("HTTPS_PROXY", "https_proxy", "ALL_PROXY", "all_proxy", "NO_PROXY", "no_proxy"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HF_HUB_OFFLINE", "0")
    asked = []
    monkeypatch.setattr(socket, "create_connection", lambda place, *_: asked.append(place) or socket.socket())
    for name, value in {
        "": "",
        "HF_ENDPOINT": "http://hub.example",
        "https_proxy": "http://gate:3128",
    }.items():
        if name:
            monkeypatch.setenv(name, value)
        assert hub_problem() == ""
        monkeypatch.delenv("HF_ENDPOINT", raising=False)
    assert asked == [("huggingface.co", 443), ("hub.example", 80), ("gate", 3128)]
    end, waited_for = threading.Event(), []
    monkeypatch.setattr(
        socket, "create_connection", lambda *_: waited_for.append(end.wait(60)) or socket.socket()
    )
    assert "cannot be reached at https://huggingface.co (TimeoutError)" in hub_problem(0.2)
    assert not waited_for  # The hub still hangs
    end.set()


def test_a_dataset_that_was_fetched_before_is_read_without_a_hub(tmp_path, monkeypatch):
    "And the package is left as it was."
    datasets = pytest.importorskip("datasets")
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    monkeypatch.setattr(datasets.config, "HF_DATASETS_CACHE", tmp_path)
    monkeypatch.setattr(datasets.config, "HF_HUB_OFFLINE", False)
    with pytest.raises(OSError, match="HF_HUB_OFFLINE is set .* owner/name is not in its local cache"):
        hub_dataset("owner/name", split="test")
    (tmp_path / "files" / "name").mkdir(parents=True)
    (tmp_path / "files" / "name" / "test.jsonl").write_text('{"text": "Rain."}\n')
    datasets.load_dataset(str(tmp_path / "files" / "name"), split="test")
    (tmp_path / "name").rename(tmp_path / "owner___name")
    assert hub_dataset("owner/name", split="test")["text"][:] == ["Rain."]
    assert datasets.config.HF_HUB_OFFLINE is False
