"""Cached quality scores: which models a line of settings.ini names, and when a stored score is read again."""

import re

import pandas as pd
import pytest

from tests.helpers.paths import ROOT
from uetrust.core.scores import Scores
from uetrust.core.settings import root
from uetrust.core.store import shard_provenance, value_digest
from uetrust.data.datasets import load_samples
from uetrust.generation.bank import bank_provenance, bank_row, fill_bank
from uetrust.scoring import cache
from uetrust.scoring.methods import BankTexts, score_generations
from uetrust.scoring.metrics import compute_metrics
from uetrust.scoring.score import score_texts
from uetrust.statistics.texts.providers import shipped_models

NLI = "data/models/tiny-nli"
CLASSES = "entailment:0,neutral:1,contradiction:2"


def test_models_are_named_by_the_group_that_they_serve():
    folder = str(root() / NLI)
    assert cache.metric_models([]) == {}
    assert cache.metric_models([f"nli={NLI}", "qg=org/writer"]) == dict(nli=folder, qg="org/writer")
    assert cache.metric_models([f"alignscore={NLI},head.bin"]) == dict(alignscore=(folder, "head.bin"))
    assert cache.metric_models([f"nli={NLI},{CLASSES}"]) == dict(nli=(folder, CLASSES))
    shipped = cache.metric_models(["shipped", "nli=org/mine"])
    assert shipped == shipped_models() | dict(nli="org/mine"), (
        "a model of one's own comes before a shipped one"
    )


@pytest.mark.parametrize("pair", ["nli", "nli=", "=data/models/tiny-nli"])
def test_a_model_that_lacks_its_group_or_checkpoint_is_refused(pair):
    with pytest.raises(ValueError, match=f"written GROUP=CHECKPOINT, .*, got '{pair.partition('=')[0]}'"):
        cache.metric_models([f"qg={NLI}", pair])


def test_names_of_classes_are_checked_before_a_model_is_loaded():
    with pytest.raises(ValueError, match="each position once and from 0 on"):
        cache.metric_models([f"nli={NLI},entailment:1"])


@pytest.fixture
def kept(tmp_path):
    "`kept(about, *folders)`: a cached table of two rows, and how often it was made"
    made = []

    def make():
        made.append(1)
        table = pd.DataFrame(dict(value=[1.5, 2.5]), index=[7, 3])
        return Scores(table, missing=dict(bleu=["no reference"]))

    def ask(about, *beside, at="here"):
        return cache.cached_scores(tmp_path / at, about, make, [tmp_path / name for name in beside]), len(
            made
        )

    return ask


def test_a_table_is_made_once_and_read_as_it_was(kept, tmp_path):
    first, made = kept(dict(texts=["a"], code="1"))
    again, still = kept(dict(texts=["a"], code="1"))
    assert (made, still) == (1, 1)
    pd.testing.assert_frame_equal(first.table, pd.DataFrame(dict(value=[1.5, 2.5])))
    pd.testing.assert_frame_equal(first.table, again.table)
    assert first.missing == again.missing == dict(bleu=["no reference"])
    assert kept(dict(texts=["b"], code="1"))[1] == 2, "other texts are scored anew"


def test_a_stored_table_says_what_decided_it_but_holds_no_text(kept, tmp_path):
    about = dict(texts=["a secret"], code="1")
    kept(about)
    (path,) = (tmp_path / "here").glob("*.parquet")
    assert path.stem == value_digest(about)[:32], "the name under which earlier versions stored it"
    said = shard_provenance(path)
    assert said.pop("shard") == path.name
    assert said == dict(code="1", found=dict(missing=dict(bleu=["no reference"])))


def test_a_table_beside_is_copied_where_there_is_none_here(kept, tmp_path):
    kept(dict(code="1"), at="there")
    found, made = kept(dict(code="1"), "nowhere", "there")
    assert made == 1 and found.table["value"].tolist() == [1.5, 2.5]
    (path,) = (tmp_path / "here").glob("*.parquet")
    path.with_name("keep").write_bytes(path.read_bytes())
    (tmp_path / "there" / path.name).write_bytes(b"damaged")
    assert kept(dict(code="1"), "there")[1] == 1, "what is here is read, whatever lies beside it"


def test_the_code_has_a_fingerprint_with_the_modules_that_are_named(tmp_path):
    assert cache.code_hash() == cache.code_hash() != cache.code_hash("scoring.cache")
    with pytest.raises(LookupError, match="no file of the package is called scoring/cash.py$"):
        cache.code_hash("scoring.cash")
    wing = {file.relative_to(ROOT / "uetrust").as_posix() for file in cache.code_files("ue.*")}
    assert {"ue/semantic.py", "ue/geometry/graphs.py"} <= wing and "scoring/cache.py" not in wing


NOT_IN_A_NUMBER = {
    "core.progress",
    "core.settings",
    "core.store",
    "core.tables",
    "core.vocabulary",
}  # And what reads files


def test_the_fingerprint_covers_all_that_metrics_are_computed_with():
    package = root() / "uetrust"
    hashed = {path for pattern in cache.HASHED_CODE for path in package.glob(pattern)}
    used = "\n".join(path.read_text(encoding="utf-8") for path in hashed)
    names = set(
        re.findall(r"from (?:\.\.|uetrust\.)((?:core|ue|nlg|models|statistics)\.[\w.]+) import", used)
    )
    assert {"core.run", "ue.similarity", "models.load"} <= names
    places = [package.joinpath(*name.split(".")) for name in names - NOT_IN_A_NUMBER]
    assert {at / "__init__.py" if at.is_dir() else at.with_suffix(".py") for at in places} <= hashed


def test_weights_are_known_by_their_bytes_or_by_their_name(tmp_path):
    for name in ("a/x.bin", "b/y.bin"):
        (tmp_path / name).parent.mkdir()
        (tmp_path / name).write_bytes(b"weights")
    one, two = (cache.weights_hash(tmp_path / name) for name in "ab")
    assert one == two and len(one) == 64 and one != cache.weights_hash(tmp_path / "a" / "x.bin")
    (tmp_path / "a" / "x.bin").write_bytes(b"others")
    assert cache.weights_hash(tmp_path / "a") != two
    assert cache.weights_hash("org/model") == "org/model"


def test_scores_of_one_model_stand_together():
    models = dict(nli="n", bart="b", embedding="b", bertscore="b")
    names = ["rouge_l", "mnli_doc", "bart_score", "summac_zs", "bleu", "bertscore_f1", "embedding_spearman"]
    assert cache.metrics_by_model(names, models) == {
        (): ["rouge_l", "bleu"],
        (("n", ""),): ["mnli_doc", "summac_zs"],
        (("b", ""),): ["bart_score", "bertscore_f1", "embedding_spearman"],
    }
    asked = cache.metrics_by_model(["judge_own_consistency"], dict(judge_own=("judge", "question.txt")))
    assert list(asked) == [(("judge", "question.txt"),)], "another question is another judge"


@pytest.fixture
def bank(tmp_path):
    "A bank of three bulletins with one greedy and one sampled text each, and its sources"
    samples = load_samples("bulletin:test:3")

    def write(part):
        kinds = dict(greedy="It rained in the north.", sample="Snow fell.")
        return [bank_row(row.id, kind, 0, text) for row in part.itertuples() for kind, text in kinds.items()]

    about = bank_provenance("bulletin", "lead", "", "", {}, dict(greedy=1, sample=1))
    fill_bank(tmp_path / "bank" / "texts", samples, about, write, progress=False)
    return tmp_path / "bank", samples


def test_greedy_texts_stand_beside_their_sources_and_references(bank):
    folder, samples = bank
    texts = cache.greedy_texts(folder, samples)
    assert list(texts) == ["id", "hypothesis", "source", "reference"] and list(texts.index) == [0, 1, 2]
    assert texts["hypothesis"].tolist() == ["It rained in the north."] * 3
    pd.testing.assert_frame_equal(texts[["source", "reference"]], samples[["source", "reference"]])
    assert list(cache.greedy_texts(folder, samples[["id", "source"]])) == ["id", "hypothesis", "source"]


def test_data_that_lack_a_source_of_the_bank_are_refused_before_anything_is_computed(bank):
    folder, samples = bank
    says = f"--data holds no source for {samples['id'][1]} of the bank: name the data it was made of"

    def score_methods(folder, samples):
        return score_generations(folder, samples=samples, progress=False)

    for ask in (cache.greedy_texts, lambda *bank: score_texts(BankTexts(*bank)), score_methods):
        with pytest.raises(ValueError, match=says):
            ask(folder, samples.drop(index=1))


def test_cached_scores_are_those_that_are_computed(bank):
    folder, samples = bank
    models, names = dict(nli=root() / NLI), ["mnli_doc", "rouge_l", "factcc"]
    found = cache.cached_metrics_of_bank(folder, samples, models, names, progress=False)
    wanted = compute_metrics(cache.greedy_texts(folder, samples), models, names, progress=False)
    pd.testing.assert_frame_equal(found.table, wanted.table)
    for known in ("missing", "cut", "cut_texts", "models"):
        assert getattr(found, known) == getattr(wanted, known), known
    assert list(found.table.index) == list(range(6))
    assert len(list((folder / "quality").glob("*.parquet"))) == 2, "one file for each model, and one for none"


def test_what_nothing_can_compute_is_an_empty_table_that_says_why(bank):
    scores = cache.cached_metrics_of_bank(*bank, {}, ["factcc"], progress=False)
    table = scores.table
    assert list(table) == ["sample", "name", "value", "note"] and len(table) == 0
    assert scores.missing == dict(factcc=["a model for 'factcc'"])


def test_a_folder_that_was_not_made_is_left_out_and_a_hub_id_is_not(tmp_path):
    models = cache.metric_models([f"nli={NLI}", "qg=org/writer", "factcc=data/cache/models/nobody"])
    models |= dict(dae=(f"{tmp_path}/nobody", "head"), bleurt=str(tmp_path), spans="no_such_pipeline")
    assert list(cache.models_at_hand(models)) == ["nli", "qg", "bleurt"]
    assert cache.models_at_hand({"spans": str(tmp_path)}) == {"spans": str(tmp_path)}  # A folder of one's own
