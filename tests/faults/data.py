"""Public data that are damaged, changed or built to fill the memory: the loaders, through `generate`."""

import gzip
import io
import json
import tarfile
import zlib

from tests.faults.harness import fault
from uetrust.core.settings import mirror

ASK = ["generate", "bank", "--model", "x", "--dry-run", "--data"]


def _mirrored(name):
    if mirror() is None:
        return None
    return (mirror() / name).read_bytes()


def _cached(folder, name, content):
    path = folder / "cache" / name
    path.parent.mkdir(parents=True)
    path.write_bytes(content)


def _bomb(size):
    "A gzip file of zeros that is a thousand times as long when it is unpacked."
    out = io.BytesIO()
    with gzip.GzipFile(fileobj=out, mode="wb", compresslevel=9) as file:
        for _ in range(size // 10_000_000):
            file.write(b"\0" * 10_000_000)
    return out.getvalue()


def _one_word_changed(content):
    lines = gzip.decompress(content).decode().split("\n")
    record = json.loads(lines[7])
    lines[7] = json.dumps(record | dict(email=record["email"].replace(" the ", " The ", 1) + " x"))
    return gzip.compress("\n".join(lines).encode())


def _wrong_check_sum(content):
    return content[:-8] + (zlib.crc32(b"") ^ 1).to_bytes(4, "little") + content[-4:]


AESLC = "aeslc/test.jsonl.gz"
CHANGES = {
    "cut": (lambda content: content[: len(content) // 2], "test.jsonl.gz", "cut short"),
    "with a wrong check sum": (_wrong_check_sum, "test.jsonl.gz", "damaged"),
    "that is garbage": (lambda content: b"garbage" * 50, "test.jsonl.gz", "damaged"),
    "that is empty": (lambda content: gzip.compress(b""), "test.jsonl.gz"),
    "with one word changed": (_one_word_changed, "sha256", "expected", "fetch it again"),
    "of lists": (lambda content: gzip.compress(b"[1]\n[2]\n"), "test.jsonl.gz"),
    "of half a line": (lambda content: gzip.compress(gzip.decompress(content)[:-9]), "line 1906"),
}
for name, (change, *says) in CHANGES.items():

    @fault("error", *says, cases={name: change}, env=dict(UETRUST_CACHE="cache"))
    def aeslc_file(folder, change):
        _cached(folder, AESLC, change(_mirrored(AESLC) or gzip.compress(b"{}\n")))
        return [*ASK, "aeslc:test:5"]


@fault("error", "test.jsonl.gz", "unpack", "GB", env=dict(UETRUST_CACHE="cache"), memory=8_000_000_000)
def aeslc_file_that_unpacks_to_gigabytes(folder):
    _cached(folder, AESLC, _bomb(2_000_000_000))
    return [*ASK, "aeslc:test:5"]


def _archive(members):
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w:gz") as archive:
        for name, content in members.items():
            info = tarfile.TarInfo(name)
            info.size = len(content)
            archive.addfile(info, io.BytesIO(content))
    return out.getvalue()


PAIR = "mlqe-pe/da/test/ru-en-test.tar.gz"
ARCHIVES = {
    "cut": lambda: (_mirrored(PAIR) or b"")[:1000],
    "with a foreign member": lambda: _archive({"../../evil.txt": b"x"}),
    "that is garbage": lambda: b"garbage",
}


@fault("error", "ru-en-test.tar.gz", "sha256", "expected", cases=ARCHIVES, env=dict(UETRUST_CACHE="cache"))
def archive_of_translations(folder, make):
    _cached(folder, PAIR, make())
    # A table that other tests left in runs/ would be right, and the archive not read: nobody else asks this
    return ["people", "--pair", "ru-en", "--split", "test20", "--without", "bleu", "rouge_l"]


PEOPLE = ["people", "--pair", "ru-en", "--without", "chrf", "bleu", "ter", "rouge_l", "meteor"]
GIVEN = {
    "without samples": ("id,comet\nru-en test20 0,.5\n", "comet.csv", "'sample'", "'id'"),
    "without a metric": ("sample\nru-en test20 0\n", "comet.csv", "no metric"),
    "of another pair": ("sample,comet\nsi-en test20 0,.5\n", "comet.csv", "si-en test20 0", "ru-en test20 0"),
    "with a sample twice": (
        "sample,comet\nru-en test20 0,.5\nru-en test20 0,.6\n",
        "twice",
        "ru-en test20 0",
    ),
    "with a word": (
        "sample,comet\nru-en test20 0,good\n",
        "comet.csv",
        "'comet'",
        "ru-en test20 0",
        "'good'",
    ),
    "with an infinite number": ("sample,comet\nru-en test20 0,inf\n", "'comet'", "ru-en test20 0", "inf"),
    "under a name that is taken": ("sample,da_z\nru-en test20 0,.5\n", "da_z", "another name"),
    "of empty cells": ("sample,comet\nru-en test20 0,\nru-en test20 1,NA\n", "comet", "no number"),
}
for name, (text, *says) in GIVEN.items() if mirror() else ():

    @fault("error", *says, cases={name: text})
    def given_metrics(folder, text):
        (folder / "comet.csv").write_text(text)
        return [*PEOPLE, "--scores", "comet.csv"]


if mirror():

    @fault("error", "nowhere.csv")
    def given_metrics_that_are_not_there(folder):
        return [*PEOPLE, "--scores", "nowhere.csv"]


DATASETS = {
    "an unknown name": ("aelsc:test:5", "aelsc"),
    "no number": ("aeslc:test", "NAME:SPLIT:NUMBER"),
    "a number that is none": ("aeslc:test:many", "NAME:SPLIT:NUMBER"),
    "a negative number": ("aeslc:test:-5", "NAME:SPLIT:NUMBER"),
    "an unknown split": ("aeslc:tset:5", "tset", "test"),
    "zero texts": ("bulletin:test:0", "bulletin:test:0", "NUMBER"),
    "more than there are": ("aeslc:test:5000", "1906"),
}
for name, (dataset, *says) in DATASETS.items():

    @fault("error", *says, cases={name: dataset})
    def dataset(folder, dataset):
        return [*ASK, dataset]


SOURCES = {
    "without ids": ("source\nIt rained.\n", "'id'"),
    "without sources": ("id,text\na,It rained.\n", "'source'"),
    "with an empty source": ("id,source\na,\nb,It rained.\n", "'source'", "row 1"),
    "with an id twice": ("id,source\na,It rained.\na,It snowed.\n", "twice", "a"),
}
for name, (text, *says) in SOURCES.items():

    @fault("error", "mine.csv", *says, cases={name: text})
    def sources(folder, text):
        (folder / "mine.csv").write_text(text)
        return [*ASK, "mine.csv"]
