"""MLQE-PE: archives are read by name and checked, recorded PRR are met, the registry says what counts."""

# ruff: noqa: F811

import pytest

from tests.helpers.translations import (
    DA,
    HEAD,
    ROWS,
    archive,
    real,
    toy,  # noqa: F401
)
from uetrust.data import translations as loader
from uetrust.data.download import DataNotAtHand, has_file, sources
from uetrust.data.loaders import BadData


def test_three_sentences_become_three_rows(toy):
    table = toy()
    assert table["document"].tolist() == ["de-en A", "de-en A", "de-en B"]
    assert table["da"].tolist() == [65, 66, 67] and table["person_2"].tolist() == [70, 71, 72]
    assert table["hter"].tolist() == [0, 0.5, 0] and table["bad_words"][1].tolist() == [True, False, True]
    assert [len(logp) - len(tokens) for logp, tokens in zip(table["logp"], table["tokens"])] == [1, 1, 1]
    assert loader._same_text(table).all()


WRONG = {
    "found 5 numbers for 3 tokens": dict(
        da={"de-en/word-probas/mt.test20.deen": "a sen@@ tence\n" + "a b c d\n" * 2}
    ),
    "word_probas.test20.deen: found 2 lines, expected 3": dict(
        da={"de-en/word-probas/word_probas.test20.deen": "-0.1 -0.2 -0.3 -0.4 -0.5\n" * 2}
    ),
    "line 1: found '0.1 -0.2": dict(
        da={"de-en/word-probas/word_probas.test20.deen": "0.1 -0.2 -0.3 -0.4 -0.5\n" + "-1 -1 -1 -1 -1\n" * 2}
    ),
    "test20.hter, line 2: found '1.5'": dict(pe={"test20.hter": "0\n1.5\n0\n"}),
    "test20.tags, line 1: found 2 tags": dict(pe={"test20.tags": "OK OK\n" * 3}),
    "member 'de-en/run.sh': found a file that is not expected": dict(da={"de-en/run.sh": "rm"}),
    "member '../outside/test20.doc_ids': found a link or an outside path": dict(
        da={"../outside/test20.doc_ids": "x"}
    ),
    "member 'de-en/link': found a link": dict(links=["de-en/link"]),
    "member 'again/test20.doc_ids': found twice": dict(
        da={"again/test20.doc_ids": DA["de-en/test20.doc_ids"]}
    ),
    "line 1: found the columns ['segment'": dict(
        da={"de-en/test20.deen.df.short.tsv": HEAD.replace("index", "segment") + "\n" + "\n".join(ROWS)}
    ),
    "line 2: found 7 fields": dict(
        da={"de-en/test20.deen.df.short.tsv": "\n".join([HEAD, ROWS[0].rsplit("\t", 1)[0], *ROWS[1:]])}
    ),
}


@pytest.mark.parametrize("message", WRONG)
def test_what_is_wrong_in_an_archive_is_named(toy, message):
    "Archive, member and line stand in the message."
    with pytest.raises(BadData) as e:
        toy(**WRONG[message])
    assert message in str(e.value) and "mlqe-pe/" in str(e.value)


def test_a_missing_member_is_named(tmp_path, monkeypatch):
    path = archive(tmp_path / "a.tar.gz", {"x/one": "1\n"})
    monkeypatch.setattr(loader, "fetch_file", lambda name: path)
    with pytest.raises(BadData, match="found no member two"):
        loader._archive_lines("toy", dict(a="one", b="two"))


def test_test21_is_read_when_it_is_there(toy):
    table = toy(split="test21")
    assert (
        table["da_z"].tolist() == [0.1, -0.2, 0.3]
        and "hter" not in table
        and table["document"].nunique() == 3
    )


@real
@pytest.mark.skipif(has_file("mlqe-pe/test21/en-cs-test21.tar.gz"), reason="test21 is in the mirror")
def test_test21_is_not_at_hand(monkeypatch):
    monkeypatch.setenv("UETRUST_OFFLINE", "1")
    with pytest.raises(DataNotAtHand, match="mlqe-pe/test21/en-cs-test21.tar.gz"):
        loader.translations("en-cs", "test21")


def test_licences_are_stated():
    files = sources()["licence"]
    assert set(files[files.index.str.startswith("mlqe-pe/")]) == {"CC0-1.0"}
    assert set(files[files.index.str.startswith("faithbench/")]) == {
        "CC-BY-NC-SA-4.0: fetch, never redistribute"
    }
