"""Sentences and claims of a bank, through the command that users type."""

import pandas as pd
import pytest

from uetrust.cli.cli import main
from uetrust.core.settings import root
from uetrust.generation.decoding import Decoding
from uetrust.generation.local import fill_local_bank
from uetrust.models.load import load_model
from uetrust.scoring.methods import score_generations
from uetrust.statistics.generator import get_pass
from uetrust.statistics.passes import compute_likelihoods

SOURCES = [
    "Mr Cole will open the pool on 8 August. It will cost 3 million dollars. The mayor is against it.",
    "The town will repair the north bridge in May. A spokesman of the town said so on Tuesday.",
]


@pytest.fixture(scope="module")
def bank(tmp_path_factory):
    "Texts of the shipped tiny-bart with their log-probabilities"
    folder = tmp_path_factory.mktemp("bank")
    model = load_model(root() / "data" / "models" / "tiny-bart")
    samples, settings = pd.DataFrame(dict(id=["a", "b"], source=SOURCES)), Decoding(samples=2)
    fill_local_bank(folder / "texts", "pools", "tiny-bart", samples, model, settings, progress=False)
    given = (folder / "conditional", folder / "texts", samples, model, get_pass("conditional"), settings)
    compute_likelihoods(*given, progress=False)
    return folder


def scored(bank, tmp_path, *options):
    out = tmp_path / "units.csv"
    assert main(["bank", "score", str(bank), "--out", str(out), *options]) == 0
    return pd.read_csv(out)


def test_the_words_of_a_text_have_all_of_its_surprisal_but_that_of_its_end(bank, tmp_path):
    words = scored(bank, tmp_path, "--unit", "word", "--method", "msp").groupby("document")["msp"].sum()
    whole = scored(bank, tmp_path, "--unit", "text", "--method", "msp", "--pool", "sum")
    stored = score_generations(bank, ["msp"], progress=False).wide["msp"]
    assert whole["msp"].tolist() == pytest.approx(stored.tolist(), rel=1e-12)
    assert (words.to_numpy() < stored.to_numpy()).all() and words.gt(0.9 * stored.to_numpy()).all()


def test_drawn_texts_of_the_bank_are_asked_about_its_sentences(bank, tmp_path, capsys):
    table = scored(bank, tmp_path, "--unit", "sentence", "--method", "msp", "claim_luq", "claim_position")
    assert table["claim_luq"].between(0, 1).all() and table["msp"].notna().all()
    assert table.groupby("document")["claim_position"].max().tolist() == [1, 1]
    assert "the shipped NLI model and encoder are tiny" in capsys.readouterr().out


def test_the_model_of_the_bank_is_asked_about_its_sentences(bank, tmp_path):
    data = tmp_path / "data.csv"
    pd.DataFrame(dict(id=["a", "b"], source=SOURCES)).to_csv(data, index=False)
    table = scored(bank, tmp_path, "--unit", "sentence", "--method", "claim_p_true", "--data", str(data))
    assert table["claim_p_true"].gt(0).all() and table["claim_p_true"].nunique() == len(table)


def test_claims_of_a_bank(bank, tmp_path):
    claims = tmp_path / "claims.csv"
    claims.write_text("document,claim\nb,The town will repair a bridge.\n")
    table = scored(bank, tmp_path, "--claims", str(claims), "--method", "msp")
    assert table["document"].tolist() == ["b"] and table["msp"].notna().all()


@pytest.mark.parametrize(
    "other, said", [("data/models/tiny-t5", "is not the model that wrote"), ("no-such", "not here")]
)
def test_the_tokens_of_a_bank_are_spelled_by_its_own_model_alone(bank, capsys, other, said):
    options = ["--unit", "word", "--method", "msp", "--model", f"generator={other}"]
    assert main(["bank", "score", str(bank), *options]) == 2
    assert said in capsys.readouterr().err
