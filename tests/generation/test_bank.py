"""Bank of generations: whole shards or none, the same bytes for the same texts, and all damage noticed."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.helpers.banks import ABOUT, SAMPLES, echo
from tests.helpers.paths import ROOT
from uetrust.core.settings import atomic_write
from uetrust.core.store import BadShard, Store, canonical_json, shard_provenance, value_digest
from uetrust.generation.bank import (
    _missing_shards,
    _read_generations,
    _sample_shards,
    bank_from_file,
    bank_of_texts,
    bank_row,
    fill_bank,
    read_bank,
    read_shard,
    write_shard,
)


def files(folder):
    return {path.name: path.read_bytes() for path in Path(folder).iterdir() if not path.name.startswith(".")}


@pytest.fixture
def bank(tmp_path):
    return fill_bank(tmp_path / "bank", SAMPLES, ABOUT, echo, 3, progress=False)


# What is written is what is read
texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=30)
rows = st.tuples(
    texts,
    st.none() | st.lists(st.integers(0, 2**31 - 1)),
    st.none() | st.integers(0, 9),
    st.sampled_from(["", "stop", "length"]),
    st.none() | st.lists(st.floats(max_value=0, allow_infinity=False, allow_nan=False)),
)


@given(st.lists(rows, min_size=1, max_size=6))
def test_a_shard_gives_back_every_value(tmp_path_factory, drawn):
    part = pd.DataFrame(dict(id=[f"ü{i}" for i in range(len(drawn))], source="x"))
    mine = [bank_row(i, "greedy", 0, *values) for i, values in zip(part["id"], drawn)]
    got = read_shard(
        write_shard(
            tmp_path_factory.mktemp("b"),
            "00000.parquet",
            mine[::-1],
            part,
            ABOUT | dict(texts=dict(greedy=1, sample=0, beam=0)),
        )
    )
    for expected, read in zip(mine, got.to_dict("records")):
        for name, value in expected.items():
            assert (pd.isna(read[name]) is True) if value is None else read[name] == value, (
                name,
                value,
                read[name],
            )


def test_bank_holds_every_text_in_the_order_of_the_samples(bank):
    df = read_bank(bank)
    assert list(df["sample"]) == [sample for sample in SAMPLES["id"] for _ in range(3)]
    assert list(df.index) == list(range(len(df)))
    assert list(zip(df["kind"], df["k"])) == [("greedy", 0), ("sample", 0), ("sample", 1)] * 7
    assert set(df["split"]) == {"test"} and Store(bank, "bank").manifest()["about"]["settings"] == dict(
        seed=1, temperature=0.7
    )


def test_provenance_is_canonical_json_in_every_shard(bank):
    import pyarrow.parquet as pq

    for shard in sorted(bank.glob("*.parquet")):
        raw = pq.read_schema(shard).metadata[b"uetrust"].decode()
        found = json.loads(raw)
        assert (
            raw == canonical_json(found)
            and found["shard"] == shard.name
            and found["model"] == "echo-model"
            and found["made_with"]["pyarrow"]
        )


@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.text(st.characters(exclude_categories=["Cs"])),
        lambda x: st.lists(x) | st.dictionaries(st.text(st.characters(exclude_categories=["Cs"])), x),
    )
)
def test_digest_ignores_the_order_of_keys_only(x):
    turned = dict(reversed(x.items())) if isinstance(x, dict) else x
    assert (
        canonical_json(turned) == canonical_json(x)
        and json.loads(canonical_json(x)) == x
        and value_digest([x]) != value_digest([x, x])
    )


# The same bytes
def test_same_texts_make_the_same_bytes_in_any_order_of_rows_shards_and_workers(bank, tmp_path):
    other = tmp_path / "other"
    for worker in (2, 0, 1):
        fill_bank(other, SAMPLES, ABOUT, lambda part: echo(part)[::-1], 3, (worker, 3), progress=False)
    assert files(other) == files(bank) and len(files(bank)) == 4


def test_one_worker_makes_every_missing_shard_and_several_share_them(tmp_path):
    shards, made = dict.fromkeys("abcde", 1), []
    store = Store(tmp_path, "bank")
    assert store.fill(shards, ["a", "c", "d"], made.append, "shards", progress=False) == tmp_path
    assert made == ["a", "c", "d"]
    by_worker = [[], []]
    for i, mine in enumerate(by_worker):
        store.fill(shards, list(shards), mine.append, "shards", (i, 2), progress=False)
    assert by_worker == [["a", "c", "e"], ["b", "d"]]


def test_another_batch_size_or_version_is_recorded_but_does_not_make_the_bank_foreign(bank):
    again = ABOUT | dict(made_with=dict(batch=1))
    assert _missing_shards(bank, SAMPLES, again, 3) == []


def test_nothing_is_made_twice(bank):
    before = {shard: shard.stat().st_mtime_ns for shard in bank.glob("*.parquet")}
    fill_bank(
        bank, SAMPLES, ABOUT, lambda part: pytest.fail("a finished shard was made again"), 3, progress=False
    )
    assert {shard: shard.stat().st_mtime_ns for shard in bank.glob("*.parquet")} == before


def test_more_samples_keep_the_full_shards(bank, tmp_path):
    first = fill_bank(tmp_path / "few", SAMPLES[:6], ABOUT, echo, 3, progress=False)
    assert _missing_shards(first, SAMPLES, ABOUT, 3) == ["00002.parquet"]
    fill_bank(first, SAMPLES, ABOUT, echo, 3, progress=False)
    assert files(first) == files(bank)


SCRIPT = """
import sys, time
sys.path.insert(0, sys.argv[2])
from tests.helpers.banks import ABOUT, SAMPLES, echo
from uetrust.generation.bank import fill_bank
def slow(part):
    time.sleep(.1)
    return echo(part)
fill_bank(sys.argv[1], SAMPLES, ABOUT, slow, 1, progress=False)
"""


def test_killed_three_times_the_bank_ends_as_if_undisturbed(tmp_path):
    whole = fill_bank(tmp_path / "whole", SAMPLES, ABOUT, echo, 1, progress=False)
    torn, run = (
        tmp_path / "torn",
        [sys.executable, "-c", SCRIPT, str(tmp_path / "torn"), str(ROOT)],
    )
    for n in (1, 3, 5):
        process = subprocess.Popen(run)
        while len(list(torn.glob("[0-9]*.parquet"))) < n:
            time.sleep(0.005)
        time.sleep(0.03 * n / 5)
        process.send_signal(signal.SIGKILL)
        assert process.wait() == -9, "it was to be killed before it ended"
    (torn / ".00006abc.parquet").write_bytes(b"half a shard")
    subprocess.run(run, check=True)
    assert files(torn) == files(whole)
    assert len(read_bank(torn)) == 21


def test_a_write_that_breaks_off_leaves_nothing_behind(tmp_path, monkeypatch):
    import pyarrow.parquet as pq

    def half(table, where, **options):
        Path(where).write_bytes(b"PAR1 half")
        raise OSError("disk full")

    monkeypatch.setattr(pq, "write_table", half)
    with pytest.raises(OSError, match="disk full"):
        write_shard(tmp_path, "00000.parquet", echo(SAMPLES), SAMPLES, ABOUT)
    assert not list(tmp_path.iterdir())


def test_a_file_is_replaced_in_one_step(tmp_path):
    "Whoever reads meets the old text or the new one, never a part: the old file is not written to."
    path = tmp_path / "notes.txt"
    path.write_text("old and whole")
    reader = path.open()
    with atomic_write(path) as temporary:
        temporary.write_text("ne")
        assert path.read_text() == "old and whole"
        temporary.write_text("new")
    assert path.read_text() == "new" and reader.read() == "old and whole"
    with pytest.raises(KeyboardInterrupt), atomic_write(path) as temporary:
        temporary.write_text("half")
        raise KeyboardInterrupt
    assert path.read_text() == "new" and list(tmp_path.iterdir()) == [path]
    reader.close()


# Damage and strangers
def test_no_flipped_byte_goes_unnoticed(bank):
    shard = bank / "00001.parquet"
    good, right, unnoticed = shard.read_bytes(), read_bank(bank), []
    for i in range(0, len(good), 11):
        shard.write_bytes(good[:i] + bytes([good[i] ^ 0x15]) + good[i + 1 :])
        try:
            got = read_bank(bank)
        except ValueError as e:
            assert "00001.parquet" in str(e) or str(bank) in str(e)
        else:
            if not got.equals(right):
                unnoticed.append(i)
    shard.write_bytes(good)
    assert not unnoticed


@pytest.mark.parametrize("keep", [0, 3, 100, -1])
def test_a_shard_cut_short_is_named_with_the_way_to_rebuild_it(bank, keep):
    shard, good = bank / "00001.parquet", files(bank)
    shard.write_bytes(good[shard.name][:keep])
    for call in (lambda: read_bank(bank), lambda: _missing_shards(bank, SAMPLES, ABOUT, 3)):
        with pytest.raises(
            BadShard,
            match=r"00001\.parquet is not a readable shard \(\d+ bytes"
            r".*delete .*00001\.parquet and run the same command again",
        ):
            call()
    shard.unlink()
    made = []
    fill_bank(
        bank, SAMPLES, ABOUT, lambda part: made.append(list(part["id"])) or echo(part), 3, progress=False
    )
    assert made == [["s3", "s4", "s5"]] and files(bank) == good


def test_a_parquet_file_of_somebody_else_is_not_a_shard(bank):
    pd.DataFrame(dict(a=[1])).to_parquet(bank / "00001.parquet")
    with pytest.raises(BadShard, match="00001.parquet is not a readable shard"):
        read_bank(bank)


def test_a_shard_made_with_other_settings_is_named_with_what_differs(bank, tmp_path):
    other = fill_bank(
        tmp_path / "other",
        SAMPLES,
        ABOUT | dict(settings=dict(seed=2, temperature=0.7)),
        echo,
        3,
        progress=False,
    )
    (bank / "00001.parquet").write_bytes((other / "00001.parquet").read_bytes())
    for call in (lambda: read_bank(bank), lambda: _missing_shards(bank, SAMPLES, ABOUT, 3)):
        with pytest.raises(
            BadShard,
            match=r"00001\.parquet does not belong to this bank: settings\.seed: found 2, expected 1\. "
            r"Rebuild it alone",
        ):
            call()


def test_a_renamed_shard_is_noticed(bank):
    (bank / "00001.parquet").write_bytes((bank / "00000.parquet").read_bytes())
    with pytest.raises(BadShard, match="shard: found '00000.parquet', expected '00001.parquet'"):
        read_bank(bank)


def test_a_changed_source_is_noticed(bank):
    changed = SAMPLES.assign(
        source=[source + "!" if i == 4 else source for i, source in enumerate(SAMPLES["source"])]
    )
    with pytest.raises(BadShard, match="00001.parquet does not belong to this bank: sources"):
        _missing_shards(bank, changed, ABOUT, 3)


def test_a_changed_name_of_a_source_is_noticed(bank):
    renamed = SAMPLES.assign(id=["another" if i == 4 else name for i, name in enumerate(SAMPLES["id"])])
    with pytest.raises(BadShard, match="00001.parquet does not belong to this bank: sources"):
        _missing_shards(bank, renamed, ABOUT, 3)


def test_a_folder_made_otherwise_is_refused_before_anything_changes(bank):
    before = files(bank)
    with pytest.raises(BadShard, match="settings.seed: found 1, expected 9"):
        _missing_shards(bank, SAMPLES, ABOUT | dict(settings=dict(seed=9, temperature=0.7)), 3)
    with pytest.raises(BadShard, match="size: found 3, expected 4"):
        _missing_shards(bank, SAMPLES, ABOUT, 4)
    with pytest.raises(BadShard, match="bank there is of 7 sources, asked for 3"):
        _missing_shards(bank, SAMPLES[:3], ABOUT, 3)
    assert files(bank) == before


@pytest.mark.parametrize("size", [0, -1, 2.5, "3", True])
def test_a_bank_of_an_impossible_size_is_refused(bank, size):
    manifest = json.loads((bank / "bank.json").read_text())
    (bank / "bank.json").write_text(json.dumps(manifest | dict(size=size)))
    with pytest.raises(BadShard, match=f"at least 1 is needed, found size = {size!r}"):
        read_bank(bank)


def test_missing_and_superfluous_files_are_named(bank):
    (bank / "00001.parquet").unlink()
    with pytest.raises(FileNotFoundError, match="1 of 3 shards are missing: 00001.parquet"):
        read_bank(bank)
    (bank / "copy of 00001.parquet").write_bytes((bank / "00000.parquet").read_bytes())
    with pytest.raises(BadShard, match="copy of 00001.parquet"):
        read_bank(bank)
    with pytest.raises(FileNotFoundError, match="no bank.json"):
        read_bank(bank.parent)


@pytest.mark.parametrize(
    "change,match",
    [
        (lambda texts: texts[:-1], "2 texts of kind 'sample'; found 1 for s6"),
        (lambda texts: [*texts, texts[0]], "the same text is there twice: s0 greedy 0"),
        (
            lambda texts: [*texts, bank_row("zz", "greedy", 0, "")],
            "samples that are missing or do not belong: zz",
        ),
        (lambda texts: texts[3:], "samples that are missing or do not belong: s0"),
        (lambda texts: [text | dict(k=text["k"] + 1) for text in texts], "k must count from 0"),
        (lambda texts: [text | dict(kind="best") for text in texts], "kinds of texts are"),
    ],
)
def test_a_shard_with_wrong_rows_is_not_written(tmp_path, change, match):
    with pytest.raises(ValueError, match=match):
        write_shard(tmp_path, "00000.parquet", change(echo(SAMPLES)), SAMPLES, ABOUT)
    assert not files(tmp_path)


@pytest.mark.parametrize(
    "samples,match",
    [
        (SAMPLES.drop(columns="source"), "'source'] not found"),
        (SAMPLES.assign(id="a"), "share an id: a"),
        (SAMPLES.assign(source=3), "must be texts; rows 0, 1, 2, 3, 4 and 2 more"),
        (SAMPLES[:0], "are empty"),
    ],
)
def test_samples_that_cannot_be_sharded_are_refused(samples, match):
    with pytest.raises(ValueError, match=match):
        _sample_shards(samples)


# A file of generations
GOOD = dict(
    id="x",
    source="It rained.",
    summary="Rain.",
    samples=["Rain.", "It did."],
    reference="Rain fell.",
    logprobs=[-0.5, -1],
)


def lines(path, *records):
    path.write_text(
        "".join(record + "\n" if isinstance(record, str) else json.dumps(record) + "\n" for record in records)
    )
    return path


def test_a_file_becomes_a_bank_with_as_many_samples_as_each_line_has(tmp_path):
    file = lines(tmp_path / "mine.jsonl", GOOD, "", {name: GOOD[name] for name in ("source", "summary")})
    given = _read_generations(file)
    assert list(given.samples["id"]) == ["x", "line 3"] and list(given.samples["reference"]) == [
        "Rain fell.",
        "",
    ]
    df = read_bank(bank_from_file(tmp_path / "bank", file))
    assert list(zip(df["sample"], df["kind"], df["k"], df["text"])) == [
        ("x", "greedy", 0, "Rain."),
        ("x", "sample", 0, "Rain."),
        ("x", "sample", 1, "It did."),
        ("line 3", "greedy", 0, "Rain."),
    ]
    assert df["logprobs"][0] == [-0.5, -1] and df["ids"].isna().all() and df["truncated"].isna().all()


def test_stored_texts_become_a_bank_whose_first_text_is_the_greedy_one(tmp_path):
    texts = {name: [f"{name} {k}" for k in range(1 + i % 3)] for i, name in enumerate(SAMPLES["id"])}
    about = ("toy", "people", SAMPLES, texts, "two files")
    stored = read_bank(bank_of_texts(tmp_path / "stored", *about, size=2, progress=False))
    for name, rows in stored.groupby("sample"):
        assert rows["text"].tolist() == [texts[name][0], *texts[name]]
        assert rows["kind"].tolist() == ["greedy"] + ["sample"] * len(texts[name])
    assert Store(tmp_path / "stored", "bank").manifest()["about"]["model"] == "two files"
    changed = ("toy", "people", SAMPLES, texts | {SAMPLES["id"][0]: ["another"]}, "two files")
    with pytest.raises(ValueError, match="the bank there was made otherwise: revision"):
        bank_of_texts(tmp_path / "stored", *changed, size=2, progress=False)
    first = SAMPLES["id"][0]
    with pytest.raises(ValueError, match=f"two files has no text about {first}; there are"):
        del texts[first]
        bank_of_texts(tmp_path / "none", *about, progress=False)


def test_a_changed_file_is_another_bank(tmp_path):
    bank_from_file(tmp_path / "bank", lines(tmp_path / "mine.jsonl", GOOD))
    with pytest.raises(BadShard, match="revision: found"):
        bank_from_file(tmp_path / "bank", lines(tmp_path / "mine.jsonl", GOOD | dict(summary="Else.")))


@pytest.mark.parametrize(
    "line,match",
    [
        ('{"source": "x"', "line 2 is not JSON"),
        ("[1]", "line 2 must be an object .* got list"),
        ({"source": "x", "sumary": "y"}, r"line 2 has no field 'summary'. Did you mean 'sumary'\?"),
        ({"summary": "y"}, "line 2 has no field 'source'"),
        (GOOD | dict(id="y", source=3), "line 2, field 'source' must be a text, found int '3'"),
        (GOOD | dict(id=7), "line 2, field 'id' must be a text"),
        (
            GOOD | dict(id="y", samples="one"),
            "line 2, field 'samples' must be a list of texts, found str 'one'",
        ),
        (
            GOOD | dict(id="y", samples=["a", None]),
            "line 2, field 'samples' must be a list of texts, found None at position 1",
        ),
        (GOOD | dict(id="y", logprobs=[-1, 0.3]), "line 2, field 'logprobs' .* found 0.3 at position 1"),
        (
            '{"source": "x", "summary": "y", "logprobs": [NaN]}',
            "line 2, field 'logprobs' .* found nan at position 0",
        ),
        (GOOD | dict(id="y", logprobs=[True]), "line 2, field 'logprobs' .* found True"),
        (
            {"source": "x", "summary": "y", "refrence": "z"},
            "line 2 has an unknown field 'refrence' .did you mean 'reference'",
        ),
        (GOOD, "line 2, field 'id' repeats 'x' of line 1"),
    ],
)
def test_errors_of_a_file_name_the_line_and_the_field(tmp_path, line, match):
    with pytest.raises(ValueError, match=r"mine\.jsonl, " + match):
        _read_generations(lines(tmp_path / "mine.jsonl", GOOD, line))


def test_a_file_that_is_missing_empty_or_not_text_is_said_to_be_so(tmp_path):
    with pytest.raises(ValueError, match="there is no file"):
        _read_generations(tmp_path / "none.jsonl")
    with pytest.raises(ValueError, match="is empty"):
        _read_generations(lines(tmp_path / "mine.jsonl", ""))
    (tmp_path / "latin.jsonl").write_bytes('{"source": "é"}'.encode("latin-1"))
    with pytest.raises(ValueError, match="not UTF-8"):
        _read_generations(tmp_path / "latin.jsonl")


def test_fields_nobody_knows_are_ignored_unless_they_look_like_a_slip(tmp_path):
    assert (
        _read_generations(lines(tmp_path / "mine.jsonl", GOOD | dict(url="http://x", model="m")))
        .samples["id"]
        .item()
        == "x"
    )


def test_importing_the_bank_does_not_load_torch():
    code = (
        "import sys, uetrust.generation.bank, uetrust.generation.decoding, uetrust.generation.endpoint; "
        "sys.exit('torch' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", code], env=os.environ).returncode == 0


def test_shard_says_what_it_is_without_being_read(bank):
    assert shard_provenance(bank / "00002.parquet")["shard"] == "00002.parquet"
