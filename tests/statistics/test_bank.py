"""Statistics of a bank: what was stored without the definition is not taken, what does not fit is counted."""

import json
from dataclasses import replace

import pyarrow.parquet as pq
import pytest

from tests.helpers.readings import encoder
from uetrust.core.store import BadShard, shard_provenance
from uetrust.models.encode import embed_texts
from uetrust.statistics.bank import compute_statistic
from uetrust.statistics.texts import STATISTICS


@pytest.mark.parametrize("name", ["entailments", "sentences"])
def test_entailments_that_were_stored_without_the_definition_are_not_taken(name, repeated, tmp_path):
    folder = compute_statistic(name, tmp_path / "nli", repeated, encoder(), progress=False)
    manifest = folder / "readings.json"
    old = json.loads(manifest.read_text())
    assert old["about"].pop("equal") == "entail each other"
    manifest.write_text(json.dumps(old))
    with pytest.raises(BadShard, match="made otherwise: equal: .*--no-resume"):
        compute_statistic(name, folder, repeated, encoder(), progress=False)


def test_what_does_not_fit_is_counted(repeated, tmp_path):
    _, cut = embed_texts(encoder(), ["w1 " * 100, "w1"])
    assert cut.tolist() == [100 + 2 - 64, 0]


@pytest.fixture
def calls(monkeypatch):
    "Grows with each shard of entailments that is computed"
    made, entry = [], STATISTICS["entailments"]

    def compute(*args, **kw):
        made.append(entry.name)
        return entry.compute(*args, **kw)

    monkeypatch.setitem(STATISTICS, "entailments", replace(entry, compute=compute))
    return made


def _entailments(folder, bank, model, **kw):
    return compute_statistic("entailments", folder, bank, model, progress=False, **kw) / "00000.parquet"


def test_what_was_kept_of_the_same_texts_is_copied(repeated, calls, tmp_path):
    kept = _entailments(tmp_path / "kept", repeated, encoder())
    found = _entailments(tmp_path / "found", repeated, encoder(), kept=kept.parent)
    assert len(calls) == 1
    assert found.read_bytes() == kept.read_bytes()


def test_what_another_model_said_or_of_other_texts_is_computed(repeated, calls, tmp_path):
    kept = _entailments(tmp_path / "kept", repeated, encoder())
    shard = pq.read_table(kept)
    about = json.loads(shard.schema.metadata[b"uetrust"])
    for key in ("revision", "sources", "dtype"):
        changed = {b"uetrust": json.dumps(about | {key: "another"}).encode()}
        pq.write_table(shard.replace_schema_metadata(changed), kept)
        found = _entailments(tmp_path / key, repeated, encoder(), kept=kept.parent)
        assert shard_provenance(found) == about
    assert len(calls) == 4
