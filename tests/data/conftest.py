"""Fixtures of several files of this folder."""

import types

import pandas as pd
import pytest

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
