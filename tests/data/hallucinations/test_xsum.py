"""XSum annotations: what the files must hold, and whether they agree with each other."""

import re
from collections import Counter

import numpy as np
import pandas as pd
import pytest

from uetrust.data.download import WrongHash
from uetrust.data.hallucinations import xsum as loader
from uetrust.data.hallucinations.xsum import (
    XSUM_GOLD,
    factual_by_votes,
    faithful_by_spans,
    xsum_spans,
    xsum_summaries,
    xsum_votes,
)
from uetrust.data.loaders import BadData

FILES = dict(
    spans=[
        "bbcid,system,summary,hallucination_type,hallucinated_span,"
        "hallucinated_span_start,hallucinated_span_end,worker_id",
        r"""7,PtGen,it\'s wet in bonn.,extrinsic,in bonn,10,17,wid_0""",
        r"""7,PtGen,it\'s wet in bonn.,NULL,NULL,-1,-1,wid_1""",
        r"""7,PtGen,it\'s wet in bonn.,intrinsic,"\nit\'s",0,4,wid_2""",
    ],
    votes=[
        "bbcid,system,summary,is_factual,worker_id",
        "7,PtGen,it's wet in bonn.,yes,wid_0",
        "7,PtGen,it's wet in bonn.,no,wid_1",
        "7,PtGen,it's wet in bonn.,NULL,wid_2",
    ],
    scores=["system_bbcid,R1,R2,RL,BERTScore,Entailment,Faithful,Factual", "ptgen_7,.2,.1,.2,.6,.01,.5,.5"],
)
READ = dict(spans=xsum_spans, votes=xsum_votes, scores=xsum_summaries)


@pytest.fixture
def read(tmp_path, monkeypatch):
    "`read(part, old, new)`: the table of a part, after a change in its file"

    def load(part, old="", new=""):
        rows = {}
        for name, lines in FILES.items():
            text = "\n".join(lines) + "\n"
            assert name != part or old in text
            path = tmp_path / loader.XSUM_ANNOTATION_FILES[name].split("/")[1]
            path.write_text(text.replace(old, new, 1) if name == part and old else text)
            rows[name] = path.read_text().count("\n") - 1 if old != "NO ROW" else len(lines) - 1
        monkeypatch.setattr(loader, "XSUM_ANNOTATION_ROWS", rows)
        monkeypatch.setattr(loader, "fetch_file", lambda name: tmp_path / name.split("/")[1])
        return READ[part]()

    return load


def test_positions_count_from_0_and_point_at_the_span(read):
    table = read("spans")
    assert table["summary"].tolist() == ["it's wet in bonn."] * 3
    assert table[["start", "end"]].values.tolist() == [[9, 16], [0, 0], [0, 4]]
    assert [text[a:b] for text, a, b in zip(table["summary"], table["start"], table["end"])] == [
        "in bonn",
        "",
        "it's",
    ]
    assert table["type"].tolist()[0] == "extrinsic" and table["type"].isna().tolist() == [False, True, False]


def test_shares_and_votes_by_hand(read):
    "Words: it's, wet, in, bonn. (with its point, outside the span)."
    assert faithful_by_spans(read("spans")).to_dict() == {
        ("7", "PtGen"): pytest.approx((3 / 4 + 1 + 3 / 4) / 3)
    }
    votes = read("votes")
    assert np.array_equal(votes["factual"], [1, 0, np.nan], equal_nan=True)
    assert factual_by_votes(votes).to_dict() == {("7", "PtGen"): 0.5}


def test_a_summary_has_its_scores_and_its_text(read):
    (row,) = read("scores").to_dict("records")
    assert row["sample"] == "PtGen 7" and row["summary"] == "it's wet in bonn."
    assert (row["rouge_1"], row["bertscore"], row["entailment"], row["factual"]) == (0.2, 0.6, 0.01, 0.5)


WRONG = [  # Part, old, new, message
    ("spans", "extrinsic", "odd", "record 1: found hallucination_type 'odd'"),
    ("spans", "10,17", "17,10", "record 1: found type 'extrinsic' from 17 to 10"),
    ("spans", "-1,-1", "1,5", "record 2: found type 'NULL' from 1 to 5"),
    ("spans", "10,17", "ten,17", "record 1: found hallucinated_span_start 'ten'"),
    ("spans", "PtGen", "GPT", "record 1: found system 'GPT'"),
    ("spans", "wid_1", "wid_9", "record 2: found worker_id 'wid_9'"),
    ("spans", r"it\'s wet in", "it is wet in", "summary: found 2 texts of ('7', 'PtGen')"),
    ("votes", "yes", "perhaps", "record 1: found is_factual 'perhaps'"),
    ("votes", "wid_1", "wid_0", "record 2: found ('7', 'PtGen', 'wid_0') again"),
    ("votes", "PtGen", "Gold", "record 1: found system 'Gold'"),
    ("votes", ",NULL,wid_2", ",NULL", "record 3: found 4 fields, perhaps half a file"),
    ("votes", "is_factual", "factual", "line 1: found no column is_factual"),
    ("scores", ".01", "1.5", "record 1: found Entailment '1.5'"),
    ("scores", ".01", "", "record 1: found Entailment ''"),
    ("scores", "ptgen_7", "bert_7", "record 1: found system_bbcid 'bert'"),
    ("scores", ".5,.5", ".5,.5\nptgen_7,.2,.1,.2,.6,.01,.5,.5", "record 2: found ('7', 'PtGen') again"),
]


@pytest.mark.parametrize(("part", "old", "new", "message"), WRONG, ids=[case[3] for case in WRONG])
def test_what_is_wrong_in_a_file_is_named_with_the_remedy(read, part, old, new, message):
    with pytest.raises(BadData) as e:
        read(part, old, new)
    assert f"{loader.XSUM_ANNOTATION_FILES[part]}, {message}" in str(e.value)
    assert str(e.value).endswith("Delete the file and fetch it again")


@pytest.mark.parametrize("part", FILES)
def test_a_file_that_was_cut_is_named(read, part, monkeypatch):
    read(part)
    rows = {name: n + 1 for name, n in loader.XSUM_ANNOTATION_ROWS.items()}
    monkeypatch.setattr(loader, "XSUM_ANNOTATION_ROWS", rows)
    with pytest.raises(BadData, match=f"records: found {rows[part] - 1}. Expected are {rows[part]}"):
        READ[part]()


def test_a_changed_file_is_refused(tmp_path, monkeypatch):
    monkeypatch.setenv("UETRUST_CACHE", str(tmp_path))
    path = tmp_path / loader.XSUM_ANNOTATION_FILES["votes"]
    path.parent.mkdir()
    path.write_text("\n".join(FILES["votes"]))
    with pytest.raises(WrongHash, match="factuality_annotations.* fetch it again"):
        xsum_votes()


@pytest.fixture(scope="module")
def released():
    return xsum_summaries().set_index(["document", "system"])


def test_the_shipped_files_count_what_is_declared(released):
    assert (len(xsum_spans()), len(xsum_votes()), len(released)) == (11185, 5597, 1992)
    assert released.groupby(level="system").size().tolist() == [498] * 4


def test_metrics_and_people_correlate_as_recorded(released):
    ranks = released[["rouge_1", "rouge_l", "bertscore", "entailment", "faithful", "factual"]].rank().corr()
    assert ranks["faithful"][:4].round(2).tolist() == [0.2, 0.16, 0.19, 0.43]
    assert ranks["factual"][:4].round(2).tolist() == [0.12, 0.11, 0.12, 0.26]


def unigrams(text):
    return Counter(re.findall("[a-z0-9]+", text.lower()))


def test_names_of_systems_are_matched_by_rouge(released):
    "ROUGE-1 with the summary by the BBC, without stemming: nearest for the system that the name stands for."
    spans = xsum_spans().drop_duplicates(["document", "system"])
    words = {(d, s): unigrams(text) for d, s, text in spans[["document", "system", "summary"]].values}

    def rouge(document, system):
        one, gold = words[document, system], words[document, XSUM_GOLD]
        return 2 * (one & gold).total() / (one.total() + gold.total())

    systems = released.index.unique("system")
    own = pd.DataFrame(
        {other: [rouge(document, other) for document, _ in released.index] for other in systems},
        index=released.index,
    )
    same = own.sub(released["rouge_1"], axis=0).abs().lt(1e-4).groupby(level="system").mean()
    assert (np.diag(same.loc[systems, systems]) > 0.7).all()
    assert same.to_numpy().sum() - np.trace(same.loc[systems, systems]) < 12 * 0.3
