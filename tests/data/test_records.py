"""Records of benchmarks: every one is a row or is counted, and what is missing is named with its home."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.helpers.consistency import lines
from uetrust.data import records
from uetrust.data.download import DataNotAtHand
from uetrust.data.loaders import BadData
from uetrust.data.summarization import rose
from uetrust.evaluation.thresholds import TRUE_DOMAINS


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
