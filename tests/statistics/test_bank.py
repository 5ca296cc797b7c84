"""Statistics of a bank: what was stored without the definition is not taken, what does not fit is counted."""

import json

import pytest

from tests.helpers.readings import encoder
from uetrust.core.store import BadShard
from uetrust.models.encode import embed_texts
from uetrust.statistics.bank import compute_statistic


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
