"""Fixtures of several files of this folder."""

import types

import pandas as pd
import pytest

from tests.helpers.consistency import article, lines
from tests.helpers.loaders import GOOD, NAME, sha
from uetrust.data import download as data


# Cache, mirror, network
@pytest.fixture
def world(tmp_path, monkeypatch):
    "A registry of one small file, an empty cache, an empty mirror and no network"
    monkeypatch.setenv("UETRUST_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("UETRUST_MIRROR", str(tmp_path / "mirror"))
    monkeypatch.setenv("UETRUST_OFFLINE", "1")
    (tmp_path / "mirror").mkdir()
    reg = pd.DataFrame(
        dict(url="http://127.0.0.1:9/scores.csv", sha256=sha(GOOD), bytes=len(GOOD)), index=[NAME]
    )
    monkeypatch.setattr(data, "sources", lambda: reg)

    def put(where, content, name=NAME):
        path = tmp_path / where / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
        return path

    return types.SimpleNamespace(
        reg=reg,
        put=put,
        path=tmp_path,
        files=lambda: sorted(
            str(path.relative_to(tmp_path)) for path in tmp_path.rglob("*") if path.is_file()
        ),
    )


@pytest.fixture
def put(tmp_path):
    "`put(name, text)` writes a file of the folder; `put.at` is the folder"

    def do(name, text):
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(text if isinstance(text, bytes) else text.encode())
        return path

    do.at = tmp_path
    return do


@pytest.fixture
def news(put):
    "CNN/DM and XSum of six articles each"
    for split, ids in (("test", "abcd"), ("validation", "ef")):
        put(
            f"cnndm/{split}.jsonl",
            lines(dict(id=i * 40, article=article(i), highlights=f"High {i} .\nLow {i} .") for i in ids),
        )
    put("xsum/test.jsonl", lines(dict(id=str(i), document=article(i), summary="x") for i in range(6)))
    return put
