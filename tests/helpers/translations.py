"""What the tests of translations share."""

import io
import tarfile

import pytest

from uetrust.core.settings import mirror
from uetrust.data import translations as loader

real = pytest.mark.skipif(mirror() is None, reason="UETRUST_MIRROR is not at hand")
HEAD = "index\toriginal\ttranslation\tscores\tmean\tz_scores\tz_mean\tmodel_scores"
ROWS = [
    f"{i}\tein Satz {i}\ta sentence {i}\t[{60 + i}, {70 + i}]\t{65 + i}.0\t[0.1, 0.3]\t0.2\t-0.5"
    for i in range(3)
]
DA = {
    "de-en/test20.doc_ids": "doc_id\nA\nA\nB\n",
    "de-en/test20.deen.df.short.tsv": "\n".join([HEAD, *ROWS]) + "\n",
    "de-en/word-probas/mt.test20.deen": "a sen@@ tence 0\na sen@@ tence 1\na sen@@ tence 2\n",
    "de-en/word-probas/word_probas.test20.deen": "-0.1 -0.2 -0.3 -0.4 -0.5\n" * 3,
    "de-en/._test20.doc_ids": "companion of macOS",
    "de-en/statement.pdf": "not read",
}
PE = {
    "test20.src": "ein Satz\n" * 3,
    "test20.mt": "a sentence 0\na sentence 1\na sentence 2\n",
    "test20.pe": "a sentence 0\none sentence\na sentence 2\n",
    "test20.hter": "0.0\n0.5\n0.0\n",
    "test20.tags": "OK OK OK OK OK OK OK\nOK BAD OK OK OK BAD OK\nOK OK OK OK OK OK OK\n",
    "test20.source_tags": "not read",
}
TEST21 = {
    "de-en-test21/test21.src": "ein Satz\n" * 3,
    "de-en-test21/test21.mt": "a sentence 0\na sentence 1\na sentence 2\n",
    "de-en-test21/goldlabels/test21.da": "0.1\n-0.2\n0.3\n",
    "de-en-test21/goldlabels/task2_wordlevel_mt.tags": "not read",
    "de-en-test21/word-probas/mt.test21.deen": DA["de-en/word-probas/mt.test20.deen"],
    "de-en-test21/word-probas/word_probas.test21.deen": "-0.1 -0.2 -0.3 -0.4 -0.5\n" * 3,
}


def archive(path, files, links=()):
    with tarfile.open(path, "w:gz") as tar:
        for name, text in files.items():
            info = tarfile.TarInfo(name)
            info.size = len(text.encode())
            tar.addfile(info, io.BytesIO(text.encode()))
        for name in links:
            info = tarfile.TarInfo(name)
            info.type, info.linkname = tarfile.SYMTYPE, "/etc/passwd"
            tar.addfile(info)
    return path


@pytest.fixture
def toy(tmp_path, monkeypatch):
    "`toy(da, pe)`: the table of three made-up sentences from archives with these members changed"
    monkeypatch.setattr(loader, "TRANSLATION_PAIRS", ("de-en",))
    monkeypatch.setattr(loader, "TRANSLATION_SPLITS", dict(test20=3, test21=3))

    def load(da=None, pe=None, test21=None, links=(), split="test20"):
        of = {
            "da": (DA | (da or {}), links),
            "post-editing": (PE | (pe or {}), ()),
            "test21": (TEST21 | (test21 or {}), ()),
        }
        paths = {kind: archive(tmp_path / f"{kind}.tar.gz", *files) for kind, files in of.items()}
        monkeypatch.setattr(loader, "fetch_file", lambda name: paths[name.split("/")[1]])
        return loader.translations("de-en", split)

    return load
