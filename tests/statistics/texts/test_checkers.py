"""Fact checkers and metrics of translations through `uetrust score FILE`: each names its network and reads
the texts that it needs."""

import numpy as np
import pandas as pd
import pytest
import torch

from tests.helpers import checkers as made
from tests.helpers.convert import convert
from uetrust.cli.cli import main
from uetrust.models.encode import embed_texts
from uetrust.models.load import load_model
from uetrust.scoring.metrics import compute_metrics, missing_inputs
from uetrust.statistics.texts.checkers import METRICX_INPUTS
from uetrust.statistics.texts.providers import shipped_models

TEXTS = pd.DataFrame(
    dict(
        id=["a", "b"],
        hypothesis=["It met. Rain fell in the north.", "Snow fell."],
        source=["The council met on Monday. Rain fell.\nIt rose.", "Snow is white."],
        reference=["The council met.", "It snowed."],
    )
)
CHECKERS = ["minicheck", "minicheck_least", "minicheck_whole", "hhem", "lettucedetect", "lettucedetect_share"]


@pytest.fixture(scope="module")
def folders(tmp_path_factory):
    at = tmp_path_factory.mktemp("models")
    found = {
        name: made.save(getattr(made, make), at / name)
        for name, make in dict(
            minicheck="roberta",
            lettucedetect="modernbert",
            base="token_t5",
            xlm="xlm_roberta",
            seahorse_grammar="seahorse",
            metricx="metricx",
        ).items()
    }
    made.released_hhem(at / "hhem-released", load_model(found["base"]).model)
    convert("hhem", at / "hhem-released", at / "hhem", "--base", found["base"])
    for name, kind, options in (
        ("comet", "regression_metric", {}),
        ("comet_kiwi", "unified_metric", dict(input_segments="[mt, src]")),
    ):
        made.released_comet(at / f"{name}-released", load_model(found["xlm"]).model, kind, **options)
        convert("comet", at / f"{name}-released", at / name, "--base", found["xlm"])
        found[name] = (str(at / name), str(at / name / "head.safetensors"))
    return found | dict(hhem=at / "hhem")


def score(tmp_path, capsys, folders, metrics, texts=TEXTS):
    "Values of `uetrust score FILE` by text and metric"
    texts.to_json(tmp_path / "mine.jsonl", orient="records", lines=True)
    named = [f"{name}={','.join(x) if isinstance(x, tuple) else x}" for name, x in folders.items()]
    words = ["score", str(tmp_path / "mine.jsonl"), "--metric", *metrics, "--model", *named]
    assert main([*words, "--out", str(tmp_path / "scores.csv")]) == 0
    capsys.readouterr()
    return pd.read_csv(tmp_path / "scores.csv").set_index("id")[metrics]


def test_a_file_is_scored_by_the_checkers(tmp_path, capsys, folders):
    used = {name: folders[name] for name in ("minicheck", "hhem", "lettucedetect")}
    values = score(tmp_path, capsys, used, CHECKERS)
    model = load_model(folders["minicheck"])
    end = model.tokenizer.eos_token

    def supported(claim, source):
        encoded = model.tokenizer(f"{source}{end}{claim}", return_tensors="pt")
        with torch.inference_mode():
            return model.model(**encoded).logits.softmax(1)[0, 1].item()

    source = TEXTS["source"][0]  # One chunk, with its line break
    first, second = supported("It met.", source), supported("Rain fell in the north.", source)
    whole = supported(TEXTS["hypothesis"][0], source)
    got = values.loc["a", ["minicheck", "minicheck_least", "minicheck_whole"]]
    np.testing.assert_allclose(got, [(first + second) / 2, min(first, second), whole], atol=2e-5)
    assert (
        values.notna().all(axis=None) and (values["lettucedetect"] >= values["lettucedetect_share"] / 2).all()
    )


def test_a_file_is_scored_by_the_regressors_of_translations(tmp_path, capsys, folders):
    used = {name: folders[name] for name in ("comet", "comet_kiwi")}
    used |= dict.fromkeys(("metricx_24", "metricx_23", "metricx_23_qe"), folders["metricx"])
    values = score(tmp_path, capsys, used, ["comet", "comet_kiwi", *METRICX_INPUTS])
    assert values.notna().all(axis=None) and values[list(METRICX_INPUTS)].stack().between(0, 25).all()
    without = score(tmp_path, capsys, used, ["comet_kiwi", "metricx_24_qe"], TEXTS.drop(columns="reference"))
    np.testing.assert_allclose(without, values[["comet_kiwi", "metricx_24_qe"]], atol=2e-5)


def test_seahorse_asks_as_true_does(tmp_path, capsys, folders):
    values = score(tmp_path, capsys, dict(seahorse_grammar=folders["seahorse_grammar"]), ["seahorse_grammar"])
    model = load_model(folders["seahorse_grammar"])
    ids = [model.tokenizer(answer, add_special_tokens=False).input_ids[0] for answer in "01"]
    start = torch.tensor([[model.model.config.decoder_start_token_id]])
    for text in TEXTS.itertuples():
        encoded = model.tokenizer(
            f"premise: {text.source} hypothesis: {text.hypothesis}", return_tensors="pt"
        )
        with torch.inference_mode():
            logits = model.model(**encoded, decoder_input_ids=start).logits[0, 0, ids]
        assert values.at[text.id, "seahorse_grammar"] == pytest.approx(logits.softmax(0)[1].item(), abs=2e-5)


def test_the_nearness_to_the_source_is_a_cosine_of_embeddings():
    encoder = shipped_models()["embedding"]
    names = ["embedding_cosine", "embedding_cosine_source"]
    table = compute_metrics(TEXTS, dict(embedding=encoder), names, progress=False).table
    values = table.pivot(index="sample", columns="name", values="value")
    for name, other in zip(names, ("reference", "source")):
        one, two = (embed_texts(load_model(encoder), list(TEXTS[x]))[0] for x in ("hypothesis", other))
        want = (one * two).sum(1) / np.sqrt((one**2).sum(1) * (two**2).sum(1))
        np.testing.assert_allclose(values[name], want, atol=2e-5)


def test_of_several_references_the_best_counts_for_comet_and_metricx(folders):
    models = dict(comet=folders["comet"], metricx_23=folders["metricx"])
    names = ["comet", "metricx_23"]
    lists = [["The council met.", "Rain."], ["It snowed.", "Snow fell in May."]]

    def wide(frame):
        table = compute_metrics(frame, models, names, progress=False).table
        return table.pivot(index="sample", columns="name", values="value")

    both = wide(TEXTS.drop(columns="reference").assign(references=lists))
    each = [wide(TEXTS.assign(reference=[pair[i] for pair in lists])) for i in (0, 1)]
    np.testing.assert_allclose(both["comet"], np.maximum(each[0]["comet"], each[1]["comet"]), atol=2e-5)
    least = np.minimum(each[0]["metricx_23"], each[1]["metricx_23"])
    np.testing.assert_allclose(both["metricx_23"], least, atol=2e-5)


def test_the_order_and_the_company_of_texts_change_nothing(folders):
    models = {name: folders[name] for name in ("minicheck", "hhem", "lettucedetect", "comet", "comet_kiwi")}
    names = [*CHECKERS, "comet", "comet_kiwi"]
    together = compute_metrics(TEXTS, models, names, progress=False).table.set_index(["sample", "name"])[
        "value"
    ]
    for i in (1, 0):
        alone = compute_metrics(TEXTS.iloc[[i]], models, names, progress=False).table
        for row in alone.itertuples():
            assert row.value == pytest.approx(together[row.sample, row.name], abs=2e-5)


def test_an_empty_text_has_a_value_or_says_why_it_has_none(folders):
    models = {name: folders[name] for name in ("minicheck", "hhem", "lettucedetect")}
    empty = TEXTS.assign(hypothesis=["", "Snow fell."], source=["Rain fell.", ""])
    table = compute_metrics(empty, models, CHECKERS, progress=False).table.set_index(["sample", "name"])
    assert (table["value"].isna() == (table["note"] != "")).all()
    assert "the text has no sentence" in table.at[("a", "minicheck"), "note"]
    assert "the source has no sentence" in table.at[("b", "minicheck"), "note"]
    assert "the text has no token" in table.at[("a", "lettucedetect"), "note"]
    assert table["value"].notna()["a", "hhem"]


def test_what_is_missing_is_named():
    assert missing_inputs("minicheck", ["hypothesis"], {}) == ["the column source", "a model for 'minicheck'"]
    assert missing_inputs("comet", ["hypothesis", "source"], {}) == [
        "the column reference",
        "a model for 'comet'",
    ]
    assert missing_inputs("metricx_24_qe", ["hypothesis", "source"], {}) == ["a model for 'metricx_24'"]


def test_a_checkpoint_of_hhem_as_published_says_how_to_convert_it(tmp_path, capsys, folders):
    released = made.released_hhem(tmp_path / "hhem", load_model(folders["base"]).model)
    TEXTS.to_json(tmp_path / "mine.jsonl", orient="records", lines=True)
    words = ["score", str(tmp_path / "mine.jsonl"), "--metric", "hhem", "--model", f"hhem={released}"]
    assert main(words) == 2
    says = capsys.readouterr().err
    assert "HHEMv2Config" in says and says.endswith("is not run: use `uetrust convert hhem`\n")
