"""Records of benchmarks: every one is a row or is counted, and what is missing is named with its home."""

import http.server
import json
import random
import threading
import types

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.helpers.consistency import lines
from uetrust.data import download, loaders, records
from uetrust.data.consistency import true_set
from uetrust.data.download import DataNotAtHand, WrongHash
from uetrust.data.loaders import BadData
from uetrust.data.summarization import rose
from uetrust.evaluation.thresholds import TRUE_DOMAINS
from uetrust.papers.ice.live import scored_summaries, summeval_texts


# Where files lie
def test_a_missing_file_says_where_to_get_it_and_what_it_holds(tmp_path):
    for name, home in records.BENCHMARK_FILES.items():
        with pytest.raises(DataNotAtHand) as e:
            records.benchmark_path(name, tmp_path)
        for part in ("data not at hand", name, str(tmp_path), home.where, str(list(home.fields))):
            assert part in str(e.value)


def test_no_home_names_a_host():
    text = " ".join(home.where for home in records.BENCHMARK_FILES.values())
    assert "://" not in text and ".com" not in text and ".co/" not in text


@given(
    st.lists(
        st.tuples(
            st.sampled_from("xyz"), st.sampled_from(["", " \n", "A", "Ä"]), st.sampled_from(["B", "", "C"])
        ),
        min_size=1,
        max_size=12,
    )
)
def test_every_record_is_a_row_or_is_counted(given):
    rows = [
        dict(
            id=name + source + hypothesis,
            row=f"record {k + 1}",
            source=source,
            hypothesis=hypothesis,
            label=1,
        )
        for k, (name, source, hypothesis) in enumerate(given)
    ]
    if not any(source.strip() and hypothesis for _, source, hypothesis in given):
        with pytest.raises(BadData, match="with a text"):
            records.tidy_benchmark(rows, "d", "f")
    else:
        df = records.tidy_benchmark(rows, "d", "f")
        found = records._distinct_records(rows)
        assert len(df) == len(found.records) == len(given) - sum(found.left_out.values())
        assert df["id"].is_unique
        assert list(df) == list(records.BENCHMARK_COLUMNS)
        assert df["source"].str.strip().ne("").all() and df["label"].dtype == int


def test_an_empty_record_does_not_take_the_place_of_a_whole_one():
    rows = [
        dict(id="a", row="record 1", source="", hypothesis="h", label=1),
        dict(id="a", row="record 2", source="s", hypothesis="h", label=1),
    ]
    assert records.tidy_benchmark(rows, "d", "f")["source"].tolist() == ["s"]


def test_a_text_that_is_missing_counts_as_empty():
    assert records._distinct_records(
        [
            dict(id=name, row="r", source="s", hypothesis=hypothesis)
            for name, hypothesis in (("a", None), ("b", "h"))
        ]
    ).left_out == {"empty hypothesis": 1}


@given(st.lists(st.integers(0, 1), min_size=1, max_size=9))
def test_a_majority_is_python_rounding_of_the_share(votes):
    "TRUE rounds the share of judges; Python rounds one half to zero."
    assert records.majority_vote(votes) == int(round(sum(votes) / len(votes)))


# The rest of TRUE
def test_the_nine_sets_are_those_of_the_study():
    assert set(records.TRUE_FILES) == set(TRUE_DOMAINS)


ROSE = dict(  # Part -> documents, and systems that summarize each, by Liu et al. (2023)
    cnndm_test=(500, 12),
    cnndm_validation=(1000, 8),
    xsum=(500, 8),
    samsum=(500, 8),
    cnndm_protocol=(100, 12),
    cnndm_protocol_gpt3=(100, 12),
)


def test_rose_has_its_22000_judged_summaries():
    judged = [n * systems for part, (n, systems) in ROSE.items() if "protocol" not in part]
    assert sum(judged) == 22_000 and list(ROSE) == list(records.ROSE_DOCUMENTS)


@pytest.mark.parametrize("part", ROSE)
def test_a_part_of_rose_that_is_not_whole_is_refused_with_its_published_number(put, part):
    text = dict(acu_labels=[1], acu=1, normalized_acu=1)
    document = dict(example_id="x", source="S", reference="R", reference_acus=["f"])
    document |= dict(annotations=dict(bart=text), system_outputs=dict(bart="by bart"))
    put(f"rose/{part}.jsonl", lines([document]))
    assert rose(part, put.at, complete=False)["id"].tolist() == ["x bart"]
    with pytest.raises(BadData, match=f"found 1 documents. {ROSE[part][0]} were published"):
        rose(part, put.at)


# What has a fixed address is fetched
@pytest.fixture
def fetching(tmp_path, monkeypatch):
    "A server on this machine that gives `content` under every path; name -> its length is what is known"
    seen, content = [], {}

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self):
            seen.append(self.path)
            body = content.get(self.path.lstrip("/"), b"")
            self.send_response(200 if body else 404)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *given):
            pass

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True).start()
    pinned = download.pinned_files()
    pinned["url"] = [f"http://127.0.0.1:{server.server_port}/{name}" for name in pinned.index]
    monkeypatch.setattr(download, "_pinned", lambda: pinned)
    monkeypatch.setenv("UETRUST_OFFLINE", "0")
    monkeypatch.setenv("UETRUST_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("UETRUST_MIRROR", str(tmp_path))

    def give(name, text, length=None):
        content[name] = text.encode()
        pinned.loc[name, "characters"] = len(text) if length is None else length

    yield types.SimpleNamespace(give=give, seen=seen, cache=tmp_path / "cache")
    server.shutdown()
    server.server_close()


BEGIN = (
    "evidence\tresponse\tgold label\nSea\u00f1or ran.\tHe ran.\tentailment\nIt rained.\tIt froze.\tneutral\n"
)


def test_a_set_with_a_fixed_address_is_fetched_once_and_has_the_known_length(fetching, tmp_path):
    name = "begin/dev_05_24_21.tsv"
    fetching.give(name, BEGIN)
    table = true_set("begin")
    assert list(table["label"]) == [1, 0] and table["source"][0] == "Sea\u00f1or ran."
    assert true_set("begin").equals(table) and fetching.seen == [f"/{name}"]
    assert (fetching.cache / name).read_text(encoding="utf-8") == BEGIN
    with pytest.raises(DataNotAtHand, match="Get it from the GitHub repository google/BEGIN"):
        true_set("begin", tmp_path / "mine")  # A folder of one's own is never filled


@pytest.mark.parametrize("length, says", [(80, "The file is another version"), (999, "is cut short")])
def test_a_set_of_another_length_is_refused_and_not_kept(fetching, length, says):
    fetching.give("begin/dev_05_24_21.tsv", BEGIN, length)
    with pytest.raises(WrongHash, match=f"found {len(BEGIN)} characters, expected {length}. .*{says}"):
        true_set("begin")
    assert not fetching.cache.exists() or not list(fetching.cache.rglob("*.tsv"))


def test_what_cannot_be_fetched_is_refused_by_name_with_its_home(fetching, monkeypatch):
    with pytest.raises(DataNotAtHand, match="qags/mturk_xsum.jsonl: the download failed .*404"):
        records.benchmark_path("qags/mturk_xsum.jsonl")
    seen = len(fetching.seen)
    by_hand = [name for name in records.BENCHMARK_FILES if name not in download.pinned_files().index]
    assert "paws/dev.tsv" in by_hand and "q2/cross_annotation.csv" not in by_hand
    for name in by_hand:
        with pytest.raises(DataNotAtHand) as error:
            records.benchmark_path(name)
        assert name in str(error.value) and records.BENCHMARK_FILES[name].where in str(error.value)
    monkeypatch.setenv("UETRUST_OFFLINE", "1")
    with pytest.raises(DataNotAtHand, match="the GitHub repository W4ngatang/qags"):
        records.benchmark_path("qags/mturk_xsum.jsonl")
    assert len(fetching.seen) == seen


def test_the_strings_of_ice_come_from_its_folds(fetching):
    "Twenty-five files of four documents, in the release's shuffled order, become SummEval's 1,600 rows."
    order = list(range(100))
    random.Random(1).shuffle(order)
    for k, name in enumerate(loaders.ICE_FOLDS):
        examples = [
            dict(
                id=f"dm-{doc}",
                decoded=f"summary {16 * doc + i + 1} .",
                references=[f"First {doc}.", "Second."],
                text=f"Article {doc}.",
                example_idx=16 * doc + i + 1,
                **{f"expert_{quality}_mean": round(i / 15, 2) for quality in loaders.SUMMEVAL_QUALITIES},
            )
            for doc in order[4 * k : 4 * k + 4]
            for i in range(16)
        ]
        fetching.give(name, json.dumps(examples, indent=1))
    table = scored_summaries("released")
    assert len(table) == 1600 and list(table["item"]) == list(range(1, 1601))
    assert list(table["hypothesis"]) == [f"summary {item} ." for item in range(1, 1601)]
    assert list(table["reference"]) == [f"First {doc}." for doc in range(100) for _ in range(16)]
    assert table["source"].iloc[-1] == "Article 99." and list(table["system"][:2]) == ["M11", "M13"]
    assert table["fluency"].between(0, 1).all() and list(table)[:6] == [
        "item",
        "doc",
        "system",
        "source",
        "reference",
        "hypothesis",
    ]
    assert len(fetching.seen) == 25
    fetching.give(loaders.ICE_FOLDS[3], json.dumps(examples))
    (fetching.cache / loaders.ICE_FOLDS[3]).unlink()
    with pytest.raises(BadData, match="ice/folds, key .'item'.: found 64 rows that repeat an earlier one"):
        scored_summaries("released")


@pytest.mark.skipif(not all(map(download.has_file, loaders.ICE_FOLDS)), reason="ICE's folds are not at hand")
def test_the_strings_of_the_folds_are_those_of_the_released_scores():
    strings, scored = loaders.ice_strings().set_index("item"), loaders.ice().set_index("item")
    assert strings.loc[scored.index, "summary"].equals(scored["summary"])
    assert strings.loc[scored.index, "source"].equals(scored["source"])
    ratings = summeval_texts().set_index("item")
    for quality in loaders.SUMMEVAL_QUALITIES:
        assert strings[quality].sub(ratings[quality]).abs().max() < 0.006
    assert not strings["reference"].eq(ratings["reference"]).any()
