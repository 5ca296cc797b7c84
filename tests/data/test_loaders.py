"""Public data: right bytes and right content, or a named error; and facts that the papers' numbers need."""

import gzip
import json
import os
import pickle
import shutil
import sys
import types

import numpy as np
import pandas as pd
import pytest

from tests.helpers.loaders import ICE_FILE, real, sha
from uetrust.core.settings import mirror, published_file
from uetrust.data import download as data
from uetrust.data import loaders
from uetrust.data.download import DataNotAtHand, WrongHash, load_plain_pickle, sources
from uetrust.data.loaders import SUMMEVAL_QUALITIES, TOFU_ERRORS, BadData
from uetrust.evaluation.cells import PRRCells, prr_null_sd


# Content that is not as declared, behind a right hash
@pytest.fixture
def edit(tmp_path, monkeypatch):
    "`edit(name, change)`: the mirror with one file changed, and a registry that believes in it"
    reg = sources()
    monkeypatch.setattr(data, "sources", lambda: reg)
    monkeypatch.setenv("UETRUST_CACHE", str(tmp_path / "cache"))

    def do(name, change):
        old, new = mirror() / name, tmp_path / "cache" / name
        new.parent.mkdir(parents=True, exist_ok=True)
        if name.endswith(".json"):
            new.write_text(json.dumps(change(json.loads(old.read_text()))))
        elif name.endswith(".csv"):
            change(pd.read_csv(old)).to_csv(new, index=False)
        elif name.endswith(".pkl"):
            new.write_bytes(pickle.dumps(change(load_plain_pickle(old))))
        else:
            new.write_bytes(
                gzip.compress(
                    "\n".join(change(gzip.decompress(old.read_bytes()).decode().splitlines())).encode()
                )
            )
        if name in reg.index:
            reg.loc[name, "sha256"] = sha(new.read_bytes())

    return do


def rows(change):
    def on(x):
        for record in x:
            change(record)
        return x

    return on


def first(change):
    return lambda x: (change(x[0]), x)[1]


def doc(change):
    return lambda x: (change(next(iter(x.values()))), x)[1]


def ice_score(name, value):
    return doc(lambda document: next(iter(document["sys_summs"].values()))["scores"].update({name: value}))


FRANK_METRICS_FILE = "frank/baseline_factuality_metrics_outputs.json"
FRANK_LABELS_FILE = "frank/human_annotations.json"
SUMMEVAL_FILE = "summeval/data.pkl"
TOFU_FILE = "tofueval/meetingbank_factual_eval_test.csv"
AESLC_FILE = "aeslc/test.jsonl.gz"
FAULTS = [
    ("frank", FRANK_METRICS_FILE, rows(lambda record: record.pop("QAGS")), "columns ['QAGS']: found none"),
    (
        "frank",
        FRANK_METRICS_FILE,
        first(lambda record: record.update(QAGS="high")),
        "column 'QAGS': found 'high' in row 0, expected numbers",
    ),
    (
        "frank",
        FRANK_METRICS_FILE,
        first(lambda record: record.update(QAGS="0.9")),
        "column 'QAGS': found '0.9' in row 0, expected numbers",
    ),
    (
        "frank",
        FRANK_METRICS_FILE,
        first(lambda record: record.update(QAGS=None)),
        "column 'QAGS': found nan in row 0",
    ),
    (
        "frank",
        FRANK_METRICS_FILE,
        first(lambda record: record.update(Bleu=101)),
        "column 'Bleu': found 101 in row 0, expected numbers from 0 to 100",
    ),
    ("frank", FRANK_METRICS_FILE, lambda x: x[1:], "rows: found 2245, expected 2246"),
    (
        "frank",
        FRANK_METRICS_FILE,
        lambda x: x[1:] + x[-1:],
        "key ['hash', 'model_name']: found 1 rows that repeat",
    ),
    (
        "frank",
        FRANK_METRICS_FILE,
        first(lambda record: record.update(hash="other")),
        "summaries in both files: found 2245, expected 2246",
    ),
    (
        "frank",
        FRANK_LABELS_FILE,
        first(lambda record: record.update(split="dev")),
        "column 'split': found dev, expected only ['test', 'valid']",
    ),
    ("frank", FRANK_LABELS_FILE, lambda x: {"all": x}, "top level: found dict, expected list"),
    (
        "ice",
        ICE_FILE,
        lambda x: (
            [
                entry["scores"].pop("unieval_fluency")
                for article in x.values()
                for entry in article["sys_summs"].values()
            ]
            and x
        ),
        "columns ['unieval_fluency']: found none",
    ),
    (
        "ice",
        ICE_FILE,
        ice_score("ice_uniform_fluency", "good"),
        "column 'ice_uniform_fluency': found 'good' in row 0",
    ),
    ("ice", ICE_FILE, ice_score("human_score_fluency", 1.01), "column 'human_fluency': found 1.01 in row 0"),
    (
        "ice",
        ICE_FILE,
        doc(lambda document: document.update(src=" ")),
        "column 'source': found no text in rows 0",
    ),
    (
        "ice",
        ICE_FILE,
        doc(lambda document: document["sys_summs"].update({"593": document["sys_summs"].pop("65")})),
        "expected a block of 16 consecutive numbers",
    ),
    ("ice", ICE_FILE, lambda x: dict(list(x.items())[1:]), "rows: found 1520, expected 1536"),
    (
        "summeval",
        SUMMEVAL_FILE,
        doc(lambda document: document["sys_summs"]["M11"]["scores"].update(fluency=6)),
        "column 'fluency': found 6 in row 0, expected numbers from 1 to 5",
    ),
    (
        "summeval",
        SUMMEVAL_FILE,
        doc(lambda document: document["sys_summs"].update(M11=document["sys_summs"].pop("M11"))),
        "systems: found another list or order",
    ),
    (
        "summeval",
        SUMMEVAL_FILE,
        doc(lambda document: document["ref_summs"].pop()),
        "references: found another number",
    ),
    ("tofueval", TOFU_FILE, lambda table: table.drop(columns="type"), "columns ['type']: found none"),
    (
        "tofueval",
        TOFU_FILE,
        lambda table: table.drop(columns="summ_sent"),
        "columns ['summ_sent']: found none",
    ),
    (
        "tofueval",
        TOFU_FILE,
        lambda table: table.astype({"sent_idx": object}).assign(sent_idx=["one", *table["sent_idx"][1:]]),
        "column 'sent_idx': found 'one' in row 0, expected numbers",
    ),
    (
        "tofueval",
        TOFU_FILE,
        lambda table: table.replace({"type": {"Contradiction": "Lie"}}),
        "column 'type': found Lie, expected only",
    ),
    (
        "tofueval",
        TOFU_FILE,
        lambda table: table.assign(type=table["type"].where(table.index != 0)),
        "types and label disagree in rows 0",
    ),
    (
        "tofueval",
        TOFU_FILE,
        lambda table: table.assign(sent_label=table["sent_label"].replace("yes", "true")),
        "column 'sent_label': found true, expected only ['no', 'yes']",
    ),
    (
        "tofueval",
        TOFU_FILE,
        lambda table: table.assign(doc_id=table["doc_id"].replace(table["doc_id"][0], "X")),
        "column 'doc_id': found",
    ),
    ("aeslc", AESLC_FILE, lambda x: x[1:], "rows: found 1905, expected 1906"),
    (
        "aeslc",
        AESLC_FILE,
        lambda x: [x[0].replace('"subject"', '"title"'), *x[1:]],
        "column 'subject': found no text in rows 0",
    ),
    (
        "aeslc",
        AESLC_FILE,
        lambda x: [json.dumps(json.loads(x[0]) | {"annotations": ["one"]}), *x[1:]],
        "column 'annotations': found another number in",
    ),
]


@real
@pytest.mark.parametrize(
    "loader,name,change,says", FAULTS, ids=[f"{fault[0]}-{i}" for i, fault in enumerate(FAULTS)]
)
def test_wrong_content_names_file_found_and_expected(edit, loader, name, change, says):
    edit(name, change)
    with pytest.raises(BadData) as e:
        getattr(loaders, loader)(*(["test"] if loader == "aeslc" else []))
    assert str(e.value).startswith(name if "both files" not in says else "frank/*.json")
    assert says in str(e.value)
    assert "expected" in str(e.value)


@real
def test_a_damaged_file_stops_the_loader_before_it_reads(tmp_path, monkeypatch):
    monkeypatch.setenv("UETRUST_CACHE", str(tmp_path))
    (tmp_path / "ice").mkdir()
    shutil.copy(mirror() / ICE_FILE, tmp_path / ICE_FILE)
    os.chmod(tmp_path / ICE_FILE, 0o644)
    content = bytearray((tmp_path / ICE_FILE).read_bytes())
    content[1000] ^= 1
    (tmp_path / ICE_FILE).write_bytes(content)
    with pytest.raises(WrongHash, match="ice/data_sms.json"):
        loaders.ice()
    os.truncate(tmp_path / ICE_FILE, 5000)
    with pytest.raises(WrongHash, match="cut short"):
        loaders.ice()


# Facts of the real data
@pytest.fixture(scope="module")
def frank():
    return loaders.frank()


@pytest.fixture(scope="module")
def ice():
    return loaders.ice()


@pytest.fixture(scope="module")
def summeval():
    return loaders.summeval()


@pytest.fixture(scope="module")
def tofu():
    return loaders.tofueval()


@real
def test_frank_as_two_domains(frank):
    assert frank.shape == (2246, 4 + 23 + 15)
    assert frank.groupby("dataset").size().to_dict() == {
        "bbc": 996,
        "cnndm": 1250,
    }
    assert frank.isna().sum()[lambda n: n > 0].to_dict() == {"FEQA": 4, "Dep Entail": 83}
    assert frank.groupby(["dataset", "split"]).size().to_dict() == {
        ("bbc", "test"): 700,
        ("bbc", "valid"): 296,
        ("cnndm", "test"): 875,
        ("cnndm", "valid"): 375,
    }
    whole = frank.dropna()
    assert {
        dataset: (len(group), round(100 * (group["Factuality"] == 1).mean(), 1))
        for dataset, group in whole.groupby("dataset")
    } == {"cnndm": (1182, 59.1), "bbc": (977, 7.9)}


@real
def test_frank_labels_are_shares_of_sentences_without_an_error(frank):
    for error in loaders.FRANK_ERRORS:
        assert (frank[error] >= frank["Factuality"] - 1e-9).all()
        assert (frank[f"Flip_{error}"] >= frank["Factuality"] - 1e-9).all()


@real
def test_frank_systems_belong_to_one_domain(frank):
    assert frank.groupby("dataset")["model_name"].unique().map(set).to_dict() == {
        dataset: set(systems) for dataset, systems in loaders.FRANK_SYSTEMS.items()
    }


@real
def test_summeval_is_100_documents_by_16_systems(summeval):
    assert len(summeval) == 1600
    assert summeval.groupby("doc").size().eq(16).all()
    assert summeval["doc"].nunique() == 100
    assert summeval.groupby("system").size().eq(100).all()
    assert summeval["item"].tolist() == list(range(1, 1601)) and summeval["references"].map(len).eq(11).all()
    rated = summeval.set_index("system")[list(SUMMEVAL_QUALITIES)] * 3
    assert np.allclose(rated, rated.round(), rtol=0, atol=1e-9)  # means of three whole ratings


@real
def test_the_printed_ranges_of_the_self_bias_paper_come_out(summeval):
    "Liu et al., Table 1: maximum, minimum, mean, median of the mean of coherence and consistency."
    human = summeval.set_index("system")[["coherence", "consistency"]].mean(axis=1)
    printed = dict(M22=[5, 2.67, 4.56, 4.67], M17=[5, 2.33, 4.46, 4.67], M20=[5, 1.33, 3.52, 3.33])
    for system, row in printed.items():
        assert np.allclose(
            human[system].agg(["max", "min", "mean", "median"]), row, rtol=0, atol=0.005 + 1e-9
        ), system


@real
def test_ice_items_are_summeval_items(ice, summeval):
    both = ice.merge(summeval, on="item", suffixes=("", "_s"))
    assert len(both) == 1536
    assert (both["system"] == both["system_s"]).all()
    assert (both["doc"].str.split("-").str[-1] == both["doc_s"].str.split("-").str[-1]).all()
    for quality in SUMMEVAL_QUALITIES:
        assert np.allclose(both[f"human_{quality}"], (both[quality] - 1) / 4, rtol=0, atol=0.005 + 1e-9)


@real
def test_realignment_puts_equal_scores_on_equal_words(ice, capsys):
    assert (ice["doc"].nunique(), len(ice)) == (96, 1536)
    new = loaders.realign_unieval(ice)
    assert "96 of 96 documents" in capsys.readouterr().out
    assert [(len(pairs), pairs["equal"].sum()) for pairs in map(loaders.identical_summaries, (ice, new))] == [
        (59, 5),
        (59, 59),
    ]
    kept = [column for column in new if not column.startswith("unieval_")]
    pd.testing.assert_frame_equal(new[kept], ice[kept])
    for quality in SUMMEVAL_QUALITIES:
        assert np.allclose(
            *(table.groupby("system")[f"unieval_{quality}"].mean() for table in (ice, new)),
            rtol=0,
            atol=1e-12,
        )  # why it is easy to miss


@real
def test_realignment_gives_the_printed_correlations(ice):
    new, printed = (
        loaders.realign_unieval(ice),
        pd.DataFrame(
            {"rho": [0.5907, 0.4331, 0.4452, 0.4728], "tau": [0.4242, 0.3479, 0.3491, 0.3432]},
            index=SUMMEVAL_QUALITIES,
        ),
    )
    for column, method in (("rho", "spearman"), ("tau", "kendall")):
        assert [
            round(new[f"human_{quality}"].corr(new[f"unieval_{quality}"], method=method), 4)
            for quality in SUMMEVAL_QUALITIES
        ] == printed[column].tolist()


@real
def test_realignment_does_not_depend_on_the_order_of_the_rows(ice):
    mixed = loaders.realign_unieval(ice.sample(frac=1, random_state=0)).sort_index()
    pd.testing.assert_frame_equal(mixed, loaders.realign_unieval(ice))


@real
def test_tofueval_prevalence_is_the_published_one(tofu):
    assert len(tofu) == 4947
    assert tofu["repeat"].sum() == 1
    assert tofu["doc_id"].nunique() == 100
    assert tofu.groupby(["doc_id", "topic"]).ngroups == 300
    ratios, printed = (
        loaders.tofueval_ratios(tofu),
        pd.read_csv(published_file("uets_null_sd.csv"), index_col="error_type"),
    )
    five = ratios.drop("Model-Extra", level="model_name")
    assert (
        (len(ratios), len(five)) == (1777, 1479)
        and ratios["sentences"].sum() == 4946
        and (ratios["words"] > 0).all()
    )
    assert dict(printed["name"]) == TOFU_ERRORS
    assert ((five[list(TOFU_ERRORS)] > 0).mean() * 100).round(1).to_dict() == printed[
        "affected_per_100"
    ].to_dict()
    assert (
        ratios[list(TOFU_ERRORS)].stack().between(0, 1).all()
        and (ratios[list(TOFU_ERRORS)].sum().gt(0)).all()
    )


@real
def test_tofueval_null_sd_is_the_published_one(tofu):
    "Median over random hundreds of the closed form; the published figures have two decimals and other draws."
    qualities = (
        1
        - loaders.tofueval_ratios(tofu).drop("Model-Extra", level="model_name")[list(TOFU_ERRORS)].to_numpy()
    )
    rng, printed = np.random.default_rng(0), pd.read_csv(published_file("uets_null_sd.csv"))
    for column, area in (("null_sd", "mean"), ("null_sd_sum_area", "sum")):
        null_sds = np.array(
            [
                prr_null_sd(PRRCells(drawn, np.zeros((100, 1)), area=area))
                if not (np.ptp(drawn, axis=0) == 0).any()
                else np.full(7, np.nan)
                for drawn in (qualities[rng.choice(len(qualities), 100, replace=False)] for _ in range(400))
            ]
        )
        assert np.nanmedian(null_sds, axis=0) == pytest.approx(printed[column], rel=0.08)


@real
def test_aeslc_counts():
    for split, n in (("train", 14436), ("validation", 1960), ("test", 1906)):
        table = loaders.aeslc(split)
        assert len(table) == n
        assert table["id"].is_unique
        assert set(table["annotations"].map(len)) == {0 if split == "train" else 3}


# Recorded inputs of peers are the same data
@real
def test_frank_equals_the_recorded_inputs(oracle, frank):
    recorded = oracle("evaluation.json")["frank_valid_inputs"]
    ours = frank[frank["split"] == "valid"]
    same = [column for column in recorded if column != "order"]
    assert len(ours) == 671 and len(same) == 14
    for column in same:
        np.testing.assert_array_equal(
            pd.Series(recorded[column]).to_numpy(), ours[column].to_numpy(), err_msg=column
        )


@real
def test_ice_equals_the_recorded_inputs(oracle, ice):
    recorded = oracle("evaluation.json")["ice_inputs"]
    assert ice.groupby("place")["item"].min().tolist() == recorded["first_summary_index"]
    for scorer, recorded_name in (
        ("human", "human"),
        ("ice_uniform", "ice_uniform"),
        ("ice_stratified", "ice_stratified"),
        ("unieval", "unieval_as_stored"),
    ):
        for quality in SUMMEVAL_QUALITIES:
            np.testing.assert_allclose(
                ice[f"{scorer}_{quality}"].to_numpy().reshape(96, 16),
                recorded[recorded_name][quality],
                rtol=0,
                atol=1e-9,
            )


# Files made here
def qags_file(n, **first):
    rows = [
        dict(
            doc_id=i,
            system_id=0,
            source="s",
            reference="s",
            system_output="t",
            scores={"consistency": i / n},
            predict_scores={"consistency": 1 - i / n},
        )
        for i in range(n)
    ]
    rows[0] |= first
    return json.dumps(rows).encode()


@pytest.fixture
def qags(world, monkeypatch):
    def put(**first):
        for dataset, n in loaders.QAGS_ROWS.items():
            name, content = f"qags/qags_{dataset}_result.json", qags_file(n, **first)
            world.put("mirror", content, name)
            world.reg.loc[name] = ["http://127.0.0.1:9/" + name, sha(content), len(content)]

    world.reg["bytes"] = world.reg["bytes"].astype(object)
    for dataset in loaders.QAGS_ROWS:
        world.reg.loc[f"qags/qags_{dataset}_result.json"] = [f"http://127.0.0.1:9/{dataset}", "0" * 64, 1]
    return put


def test_qags_is_not_at_hand_until_the_mirror_has_it(qags):
    with pytest.raises(DataNotAtHand, match="qags/qags_cnndm_result.json; unset UETRUST_OFFLINE"):
        loaders.qags_predictions()
    qags()
    table = loaders.qags_predictions()
    assert table.groupby("dataset").size().to_dict() == {"cnndm": 235, "xsum": 239}
    assert list(table) == [
        "dataset",
        "doc_id",
        "source",
        "summary",
        "human",
        "unieval",
    ]
    assert np.allclose(table["human"] + table["unieval"], 1)


@pytest.mark.parametrize(
    "wrong,says",
    [
        (dict(scores={}), "'human': found nan in row 0"),
        (dict(predict_scores={"consistency": "x"}), "'unieval': found 'x'"),
        (dict(doc_id=1), "rows that repeat"),
    ],
)
def test_qags_content_is_checked(qags, wrong, says):
    qags(**wrong)
    with pytest.raises(BadData, match=says) as e:
        loaders.qags_predictions()
    assert "qags/qags_cnndm_result.json" in str(e.value)


@pytest.fixture
def empty(world, monkeypatch):
    "No public file at all, but the real registry"
    monkeypatch.setattr(data, "sources", sources)
    return world


def lines(*rows):
    return gzip.compress("\n".join(map(json.dumps, rows)).encode())


ARTICLES = [
    dict(id="7", document="A b. C d.", summary="A."),
    dict(id="8", document="E f. G h.", summary="E."),
]


def test_xsum_reads_a_local_file_first(empty, monkeypatch):
    monkeypatch.setitem(loaders.HUB_ROWS["xsum"], "test", 2)
    empty.put("mirror", lines(*ARTICLES), "xsum/test.jsonl.gz")
    assert loaders.xsum("test").to_dict("records") == ARTICLES
    empty.put("mirror", lines(ARTICLES[0]), "xsum/test.jsonl.gz")
    with pytest.raises(BadData, match="xsum/test.jsonl.gz, rows: found 1, expected 2"):
        loaders.xsum("test")


def test_without_datasets_the_extra_is_named(empty, monkeypatch):
    monkeypatch.setitem(sys.modules, "datasets", None)
    for load in (loaders.xsum, loaders.aeslc):
        with pytest.raises(DataNotAtHand, match=r"pip install 'uetrust\[full\]'"):
            load("test")


@pytest.fixture
def fake_hub(empty, monkeypatch):
    "The package `datasets` with rows of ours"
    calls, rows = [], {}

    def load_dataset(repo, split, revision=None):
        calls.append((repo, split, revision))
        if repo not in rows:
            raise ConnectionError("no network")
        return types.SimpleNamespace(to_pandas=lambda: pd.DataFrame(rows[repo]))

    fake = dict(load_dataset=load_dataset, config=types.SimpleNamespace(HF_HUB_OFFLINE=False))
    fake["exceptions"] = types.SimpleNamespace(DatasetsError=ValueError)
    monkeypatch.setitem(sys.modules, "datasets", types.SimpleNamespace(**fake))
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    return calls, rows


def test_the_right_split_is_requested_from_the_hub(fake_hub, monkeypatch):
    calls, rows = fake_hub
    monkeypatch.setitem(loaders.HUB_ROWS["xsum"], "validation", 2)
    monkeypatch.setitem(loaders.HUB_ROWS["aeslc"], "test", 2)
    rows |= {
        "EdinburghNLP/xsum": ARTICLES,
        "Yale-LILY/aeslc": [dict(email_body="Hi", subject_line="a"), dict(email_body="Ho", subject_line="b")],
    }
    assert loaders.xsum("validation")["summary"].tolist() == ["A.", "E."]
    assert loaders.aeslc("test").to_dict("records") == [
        dict(id=f"test-{i}", email=email, subject=subject, annotations=[])
        for i, (email, subject) in enumerate([("Hi", "a"), ("Ho", "b")])
    ]
    assert calls == [
        ("EdinburghNLP/xsum", "validation", "refs/convert/parquet"),
        ("Yale-LILY/aeslc", "test", None),
    ]


def test_a_hub_that_does_not_answer_is_data_not_at_hand(fake_hub):
    with pytest.raises(
        DataNotAtHand,
        match="xsum/test.jsonl.gz: no answer of the hub.* from huggingface.co/datasets/EdinburghNLP/xsum ",
    ):
        loaders.xsum("test")


def test_the_real_package_reads_a_folder(empty, monkeypatch):
    pytest.importorskip("datasets", reason="the package datasets is not installed (extra full)")
    monkeypatch.setitem(loaders.HUB_ROWS["xsum"], "test", 2)
    (empty.path / "hub").mkdir()
    (empty.path / "hub" / "test.jsonl").write_bytes(gzip.decompress(lines(*ARTICLES)))
    monkeypatch.setitem(loaders.UNHASHED, "xsum/test.jsonl.gz", str(empty.path / "hub"))
    assert loaders.xsum("test")["document"].tolist() == [article["document"] for article in ARTICLES]


def test_the_dialogues_are_found_in_both_places(empty, monkeypatch):
    ids = {
        split: {domain: [f"{domain}-{split}-{i}" for i in range(2)] for domain in ("mediasum", "meetingbank")}
        for split in ("dev", "test")
    }
    content, name = json.dumps(ids).encode(), "tofueval/document_ids_dev_test_split.json"
    reg = sources()
    reg.loc[name, "sha256"] = sha(content)
    monkeypatch.setattr(data, "sources", lambda: reg)
    empty.put("mirror", content, name)
    with pytest.raises(
        DataNotAtHand, match="mediasum/news_dialogue.json: .*from github.com/zcgzcgzcg1/MediaSum "
    ):
        loaders.tofueval_dialogues()
    news = [
        dict(id=f"mediasum-{split}-{i}", speaker=["A", "B"], utt=["Hello.", f"{split} {i}."])
        for split in ("dev", "test")
        for i in range(3)
    ]
    empty.put("mirror", json.dumps(news).encode(), "mediasum/news_dialogue.json")
    meetings = [
        dict(meeting_id=f"meetingbank-{split}-{i}", source=f"minutes {split} {i}", reference="r")
        for split in ("dev", "test")
        for i in range(2)
    ]
    empty.put("mirror", lines(*meetings), "meetingbank/test.jsonl.gz")
    dialogues = loaders.tofueval_dialogues().set_index("doc_id")
    assert len(dialogues) == 8
    assert dialogues.loc["mediasum-test-1", "source"] == "A: Hello.\nB: test 1."
    assert dialogues.loc["meetingbank-dev-0", ["domain", "split", "source"]].tolist() == [
        "meetingbank",
        "dev",
        "minutes dev 0",
    ]
    empty.put("mirror", lines(*meetings[1:]), "meetingbank/test.jsonl.gz")
    with pytest.raises(BadData, match="column 'source': found no text"):
        loaders.tofueval_dialogues()
