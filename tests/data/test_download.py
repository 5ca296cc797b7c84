"""Public files: the right bytes from cache, mirror or network, or an error that names the remedy."""

import copyreg
import http.server
import lzma
import os
import pickle
import re
import socket
import threading
import types

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.helpers.loaders import GOOD, ICE_FILE, NAME, real, sha
from uetrust.core.settings import mirror, root
from uetrust.data import download as data
from uetrust.data.download import (
    FREE_LICENCES,
    LONGEST_MESSAGE,
    UNHASHED,
    DataNotAtHand,
    WrongHash,
    data_not_at_hand,
    fetch_file,
    has_file,
    hub_dataset,
    hub_problem,
    load_plain_pickle,
    shipped_files,
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


def test_a_missing_file_offline_names_file_and_remedy(world):
    assert not has_file(NAME)
    with pytest.raises(DataNotAtHand) as e:
        fetch_file(NAME)
    assert str(e.value) == (
        f"data not at hand: {NAME}; unset UETRUST_OFFLINE or set UETRUST_MIRROR to its folder"
    )
    assert isinstance(e.value, FileNotFoundError)
    assert world.files() == []
    assert not (world.path / "cache").exists()


def test_a_mirror_that_is_no_folder_is_reported(world, monkeypatch):
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
    assert NAME in str(e.value) and world.files() == []
    assert error is DataNotAtHand or world.reg.loc[NAME, "url"] in str(e.value)


# The line about a file that is not at hand
REASONS = {
    "none": "",
    "no hash": "it has no known hash",
    "extra": "no package datasets: pip install 'uetrust[full]'",
    "long": "the download failed (ConnectionError: HTTPSConnectionPool(host='x', port=443): "
    + "é" * 5000
    + ")",
    "lines": "first\nsecond\r\n\tthird" * 99,
}


@pytest.mark.parametrize("reason", REASONS)
@pytest.mark.parametrize("mirror_is", ["none", "no folder", "deep"])
@pytest.mark.parametrize("offline", "01")
def test_a_missing_file_is_reported_in_one_line_of_180_characters(
    reason, mirror_is, offline, tmp_path, monkeypatch
):
    "The name and the remedy are whole, however long the reason, the folders and the address are."
    deep = tmp_path / "/".join(["a" * 200] * 5)
    monkeypatch.setenv("UETRUST_OFFLINE", offline)
    monkeypatch.setenv("UETRUST_CACHE", str(deep))
    monkeypatch.delenv("UETRUST_MIRROR", raising=False)
    if mirror_is != "none":
        monkeypatch.setenv("UETRUST_MIRROR", str(deep))
    if mirror_is == "deep":
        deep.mkdir(parents=True)
    for name in [*sources().index, *UNHASHED]:
        message = str(data_not_at_hand(name, REASONS[reason]))
        assert len(message) <= LONGEST_MESSAGE == 180 and message.isprintable(), message
        assert re.match(rf"data not at hand: {re.escape(name)}[:;] ", message) and "aaa" not in message
        by_hand = f"get it from {data._home(UNHASHED.get(name, ''))} and"
        other = "unset UETRUST_OFFLINE or" if offline == "1" else "connect to the network or"
        assert f"; {by_hand if name in UNHASHED else other} set UETRUST_MIRROR to " in message
    if len(REASONS[reason]) < 50:
        assert REASONS[reason] in message
    else:
        assert "…;" in message and REASONS[reason][:5] in message


def test_the_repository_of_a_raw_file_is_its_home():
    raw = "https://raw.githubusercontent.com/artidoro/frank/80a88fb/data/human_annotations.json"
    assert data._home(raw) == "github.com/artidoro/frank"
    assert data._home("https://github.com/a/b") == "github.com/a/b"


# Copies in the repository
PUBLIC = root() / "data" / "public"


def test_every_copy_in_the_repository_is_the_registered_file():
    "Whole files that may be given on, and nothing else but the page that names their authors."
    files, there = sources(), {}
    for path in PUBLIC.rglob("*"):
        if path.is_file() and path.name != "README.md":
            content, name = path.read_bytes(), path.relative_to(PUBLIC).as_posix()
            there[name.removesuffix(".xz")] = lzma.decompress(content) if name.endswith(".xz") else content
    assert set(there) == set(shipped_files())
    assert {name: sha(content) for name, content in there.items()} == files.loc[[*there], "sha256"].to_dict()
    assert set(files.loc[[*there], "licence"]) <= set(FREE_LICENCES)
    assert sum(path.stat().st_size for path in PUBLIC.rglob("*") if path.is_file()) < 5.5e6


def test_the_page_of_the_copies_names_every_folder_and_its_licence():
    page, files = (PUBLIC / "README.md").read_text(), sources()
    for name in shipped_files():
        row = [line for line in page.splitlines() if line.startswith(f"| `{name.split('/')[0]}/")]
        assert len(row) == 1 and f"| {files.at[name, 'licence']} |" in row[0], name
        assert data._home(files.at[name, "url"]) in row[0]


@pytest.fixture
def copies(world, monkeypatch):
    "`copies(content)` puts a compressed copy of the toy file into a checkout of its own"
    monkeypatch.setattr(data, "root", lambda: world.path / "checkout")

    def put(content):
        return world.put("checkout/data/public", content, f"{NAME}.xz")

    return put


def test_a_compressed_copy_is_unpacked_once_into_the_cache(world, copies):
    copy = copies(lzma.compress(GOOD))
    assert has_file(NAME) and not (world.path / "cache").exists()  # Asking writes nothing
    path = fetch_file(NAME)
    assert path == world.path / "cache" / NAME and path.read_bytes() == GOOD
    assert world.files() == [f"cache/{NAME}", f"checkout/data/public/{NAME}.xz"]
    copy.unlink()
    assert fetch_file(NAME) == path


def test_a_copy_comes_after_cache_and_mirror_and_needs_no_unpacking_where_it_is_plain(world, copies):
    copies(b"damaged")
    assert fetch_file(NAME) if world.put("mirror", GOOD) else None
    (world.path / "mirror" / NAME).unlink()
    plain = world.put("checkout/data/public", GOOD)
    assert fetch_file(NAME) == plain and not (world.path / "cache").exists()


@pytest.mark.parametrize(
    ("content", "says"),
    [
        (b"", "cannot be unpacked"),
        (b"no archive", "cannot be unpacked"),
        (lzma.compress(GOOD)[:-9], "cannot be unpacked"),
        (lzma.compress(GOOD + b"c,1\n"), "damaged or another version"),
        (lzma.compress(GOOD[:-3]), "cut short"),
    ],
)
def test_a_damaged_copy_is_an_error_and_leaves_nothing(world, copies, content, says):
    copies(content)
    with pytest.raises(WrongHash, match=says) as e:
        fetch_file(NAME)
    assert f"restore it with git checkout data/public/{NAME}.xz" in str(e.value)
    assert world.files() == [f"checkout/data/public/{NAME}.xz"]


def test_a_cache_that_cannot_be_written_is_reported_with_the_remedy(world, copies, monkeypatch):
    copies(lzma.compress(GOOD))
    monkeypatch.setenv("UETRUST_CACHE", str(world.put("away", b"a file", "cache")))
    with pytest.raises(DataNotAtHand) as e:
        fetch_file(NAME)
    assert "; set UETRUST_CACHE to a folder that can be written" in str(e.value)
    assert "into the cache folder" in str(e.value) and len(str(e.value)) <= LONGEST_MESSAGE


def test_copies_are_made_from_the_checked_files(world, copies):
    world.put("mirror", GOOD)
    data._store_public(world.path / "made", [NAME])
    (path,) = (world.path / "made").rglob("*.xz")
    assert path.name == "scores.csv.xz" and lzma.decompress(path.read_bytes()) == GOOD
    name = "toy/scores.tar.gz"
    world.reg.loc[name] = world.reg.loc[NAME]
    world.put("mirror", GOOD, name)
    data._store_public(world.path / "made", [name])
    assert (world.path / "made" / name).read_bytes() == GOOD


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


def test_requests_go_to_the_hub_of_the_environment(monkeypatch):
    "Its own address, a mirror's or a proxy's; a port that is closed, and one where nothing ever answers."
    for name in ("HTTPS_PROXY", "https_proxy", "ALL_PROXY", "all_proxy", "NO_PROXY", "no_proxy"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HF_HUB_OFFLINE", "0")
    addresses = []
    connect = lambda place, *_: addresses.append(place) or socket.socket()  # noqa: E731
    monkeypatch.setattr(socket, "create_connection", connect)
    for name, value in {
        "": "",
        "HF_ENDPOINT": "http://hub.example",
        "https_proxy": "http://gate:3128",
    }.items():
        if name:
            monkeypatch.setenv(name, value)
        assert hub_problem() == ""
        monkeypatch.delenv("HF_ENDPOINT", raising=False)
    assert addresses == [("huggingface.co", 443), ("hub.example", 80), ("gate", 3128)]
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


def test_a_notebook_shows_one_line_in_place_of_a_traceback(capsys):
    from IPython.core.interactiveshell import InteractiveShell

    cell = "from uetrust.data.download import DataNotAtHand; raise DataNotAtHand('data not at hand: x.csv')"
    InteractiveShell().run_cell(cell)
    assert capsys.readouterr().out.strip() == "data not at hand: x.csv"
