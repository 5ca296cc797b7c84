"""Scores of sentences, words and claims, through the command that users type."""

import json

import numpy as np
import pandas as pd
import pytest

from uetrust.cli.cli import main
from uetrust.core.run import ScoreRun, compute_score
from uetrust.core.segmentation import split_sentences
from uetrust.core.settings import root
from uetrust.data.generations import Generation
from uetrust.models.classifiers import token_cosines
from uetrust.models.encode import embed_texts
from uetrust.models.load import load_model
from uetrust.nlg.alignment import bertscore_f1
from uetrust.scoring.units import claim_units, text_units, unit_scores
from uetrust.statistics.scores import load_scores
from uetrust.statistics.texts.claims import claim_entailments

TEXT = "Ana Cole opened the pool. It rained. The mayor left."
TOKENS = ["Ana", " Col", "e", " opened", " the", " pool", ".", " It", " rain", "ed", ".", " The", " mayor"]
TOKENS += [" left", ".", "<|im_end|>"]
LOGP = np.log(np.linspace(0.95, 0.2, len(TOKENS)))


@pytest.fixture
def replies(tmp_path):
    rows = [dict(id="a", text=TEXT, tokens=TOKENS, logprobs=LOGP.tolist())]
    rows += [dict(id="b", text="Fees rose.", tokens=["F", "ees", " rose", "."], logprobs=[-0.5, -1, -2, 0])]
    file = tmp_path / "replies.jsonl"
    file.write_text("\n".join(map(json.dumps, rows)))
    return file


def scored(replies, capsys, *more):
    "Table that `uetrust score` writes, and what it prints"
    out = replies.with_name("units.csv")
    assert main(["score", str(replies), "--out", str(out), *more]) == 0
    return pd.read_csv(out), capsys.readouterr().out


def test_a_sentence_has_the_numbers_of_its_tokens(replies, capsys):
    table, said = scored(replies, capsys, "--unit", "sentence", "--method", "msp", "perplexity", "min_token")
    assert list(table) == ["document", "position", "sentence", "msp", "perplexity", "min_token"]
    assert table["document"].tolist() == ["a", "a", "a", "b"] and table["position"].tolist() == [0, 1, 2, 0]
    own = [-LOGP[:7], -LOGP[7:11], -LOGP[11:15], np.array([0.5, 1, 2, 0])]
    for name, pool in dict(msp=np.sum, perplexity=np.mean, min_token=np.max).items():
        assert table[name].tolist() == pytest.approx(list(map(pool, own)))
    assert "3 methods on 4 sentences of 2 texts" in said and "Least certain by msp:" in said


def test_words_and_one_rule_for_all_methods(replies, capsys):
    table, _ = scored(replies, capsys, "--unit", "word", "--method", "msp", "perplexity", "--pool", "largest")
    assert table["word"].tolist()[:3] == ["Ana", "Cole", "opened"] and len(table) == 12
    assert table["msp"].tolist()[1] == pytest.approx(-LOGP[2]) and table["msp"].equals(table["perplexity"])


def test_a_claim_has_the_tokens_of_the_words_that_it_shares(replies, capsys):
    claims = replies.with_name("claims.csv")
    rows = [
        ("b", "rose", 1),
        ("a", "The MAYOR went.", 0),
        ("a", "Snow fell", 1),
        ("a", "Cole opened a pool", 1),
    ]
    pd.DataFrame(rows, columns=["document", "claim", "right"]).to_csv(claims, index=False)
    table, said = scored(replies, capsys, "--claims", str(claims), "--method", "msp")
    assert table["claim"].tolist() == ["The MAYOR went.", "Snow fell", "Cole opened a pool", "rose"]
    assert table["right"].tolist() == [0, 1, 1, 1]
    mine = [-LOGP[11:13].sum(), np.nan, -LOGP[[1, 2, 3, 5, 6]].sum(), 2.0]
    np.testing.assert_allclose(table["msp"], mine)
    assert "1 of 4 claims have no score: they share no word with their text" in said


@pytest.mark.parametrize(
    ("claims", "said"),
    [
        ("document,claim\nc,It rained\n", "1 documents of the claims are no text of the file: c"),
        ("document,statement\na,It rained\n", "claims need the columns document and claim"),
        ("document,claim\na,\n", "a claim of document 'a' is empty"),
        ("document,claim,msp\na,It rained,1\n", "the claims have a column 'msp'"),
        ("document,claim,claim_position\na,It rained,1\n", "the claims have a column 'claim_position'"),
    ],
)
def test_claims_that_fit_no_text(replies, capsys, claims, said):
    file = replies.with_name("claims.csv")
    file.write_text(claims)
    assert main(["score", str(replies), "--claims", str(file), "--method", "msp", "claim_position"]) == 2
    assert said in capsys.readouterr().err


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--method", "token_std"], "token_std: no sum, mean or largest of one number per token"),
        (["--metric", "rouge_l"], "--metric judges whole texts"),
        (["--method", "mte"], "mte lacks greedy_entropy"),
    ],
)
def test_what_has_no_value_for_a_sentence(replies, capsys, options, said):
    assert main(["score", str(replies), "--unit", "sentence", *options]) == 2
    assert said in capsys.readouterr().err


def test_texts_without_tokens_are_counted(replies, capsys):
    rows = [json.loads(line) for line in replies.read_text().splitlines()]
    del rows[1]["tokens"]
    replies.write_text("\n".join(map(json.dumps, rows)))
    table, said = scored(replies, capsys, "--unit", "sentence", "--method", "msp")
    assert table["msp"].isna().tolist() == [False, False, False, True]
    assert "1 of 4 sentences have no score: the file has no tokens of their text" in said


def test_a_sentence_table_is_audited_without_a_flag(tmp_path, capsys):
    "What `score` writes, with labels added, is what `audit` reads."
    rng, rows = np.random.default_rng(0), []
    for i in range(40):
        tokens = [f" w{j}" if j % 5 else f" W{j}." for j in range(1, 21)]
        logprobs = np.log(rng.uniform(0.1, 1, 20)).tolist()
        rows.append(dict(id=f"t{i}", text="".join(tokens).strip(), tokens=tokens, logprobs=logprobs))
    file, out = tmp_path / "replies.jsonl", tmp_path / "sentences.csv"
    file.write_text("\n".join(map(json.dumps, rows)))
    assert main(["score", str(file), "--unit", "sentence", "--out", str(out)]) == 0
    table = pd.read_csv(out)
    assert len(table) > 80
    table.assign(human=(rng.uniform(size=len(table)) > 0.5).astype(int)).to_csv(out, index=False)
    capsys.readouterr()
    assert main(["audit", str(out), "--truth", "human", "--uncertainty", "perplexity"]) == 0
    assert "within" in capsys.readouterr().out


def test_a_claim_may_be_a_number(replies, capsys):
    claims = replies.with_name("claims.csv")
    claims.write_text("document,claim\na,4\nb,2024\n")
    table, said = scored(replies, capsys, "--claims", str(claims), "--method", "msp")
    assert table["msp"].isna().all() and "2 of 2 claims have no score" in said


def test_odd_spellings_of_tokens():
    "Marks of SentencePiece, bytes of GPT-2, halves of a character, and a sentence without spaces"
    for text, tokens, sizes in [
        ("Ja so. Nein.", ["\u2581Ja", "\u2581so", ".", "\u2581N", "ein", ".", "</s>"], [3, 3]),
        ("Über uns. Ja.", ["Ã\u013eber".replace("\u013e", "ľ"), "Ġuns", ".", "ĠJa", "."], [3, 2]),
        ("\U0001f327 rain. Sun.", ["\ufffd", "\ufffd", " rain", ".", " Sun", "."], [3, 2]),
        ("今天下雨。明天晴。", ["今天", "下雨", "。", "明天", "晴。"], [3, 2]),
    ]:
        units = text_units(Generation(text, tokens=tokens))
        assert [len(unit.tokens) for unit in units] == sizes, text


def test_one_run_and_its_units():
    run = ScoreRun(["a"], load_scores(), greedy_logp=[LOGP])
    text = Generation(TEXT, tokens=TOKENS)
    table = unit_scores(run, [text_units(text)], ["msp"])
    assert table["msp"].sum() == pytest.approx(-LOGP[:-1].sum())
    assert [len(unit.tokens) for unit in claim_units(text, ["It rained", "nothing"])] == [4, 0]
    with pytest.raises(ValueError, match="token_std is not the sum"):
        unit_scores(run, [text_units(text)], ["token_std"])


def test_samples_are_asked_about_sentences_and_claims(replies, capsys):
    "From the command line, with the numbers that the parts give one by one"
    rows = [json.loads(line) for line in replies.read_text().splitlines()]
    drawn = ["Ana Cole opened the pool. It snowed.", "It rained."]
    rows[0]["samples"] = drawn
    replies.write_text("\n".join(map(json.dumps, rows)))
    names = ["claim_luq", "claim_luq_pair", "selfcheck_bertscore", "claim_pair_cosine", "selfcheck_unigram"]
    names += ["claim_position", "msp", "claim_page_rank"]
    table, said = scored(replies, capsys, "--unit", "sentence", "--method", *names)
    assert list(table) == ["document", "position", "sentence", "msp", *(n for n in names if n != "msp")]
    sentences = split_sentences(TEXT)
    nli, encoder = (load_model(root() / "data" / "models" / name) for name in ("tiny-nli", "tiny-encoder"))
    alone = pd.concat([claim_alone(nli, sentence, [TEXT, *drawn], sentences) for sentence in sentences])
    for name in ("claim_luq", "claim_luq_pair", "claim_page_rank"):
        assert table[name].tolist()[:3] == pytest.approx(alone[name].tolist(), abs=1e-5), name
    pairs = [(sentence, *split_sentences(drawn[0])) for sentence in sentences]
    alone = {"selfcheck_bertscore": f1_of, "claim_pair_cosine": cosine_of}
    for name, likeness in alone.items():
        best = [max(likeness(encoder, claim, part) for part in parts) for claim, *parts in pairs]
        last = [likeness(encoder, claim, drawn[1]) for claim in sentences]
        mine = 1 - (np.array(best) + last) / 2
        assert table[name].tolist()[:3] == pytest.approx(mine.tolist(), abs=1e-5), name
    assert table["claim_position"].tolist() == pytest.approx([1 / 3, 2 / 3, 1, 1])
    undrawn = table.loc[3, ["claim_luq", "claim_pair_cosine", "selfcheck_unigram"]]
    assert undrawn.isna().all()
    assert "tiny" in said  # The small shipped models were trained on other texts


def claim_alone(nli, claim, texts, claims):
    "Scores of one claim by an NLI model, from a run made by hand"
    found, _ = claim_entailments(nli, claims, [texts] * len(claims))
    run = ScoreRun(claims, load_scores(), **found, claim_document=["a"] * len(claims))
    values = {name: compute_score(run, name)["value"][claims.index(claim)] for name in CLAIM_METHODS}
    return pd.DataFrame(values, index=[claim])


CLAIM_METHODS = ("claim_luq", "claim_luq_pair", "claim_page_rank")


def test_a_model_is_asked_whether_each_sentence_is_true(replies, capsys):
    "The same number as by hand: one question, then log p of the next token"
    import torch

    rows = [json.loads(line) for line in replies.read_text().splitlines()]
    rows[0]["source"], rows[1]["source"] = "The pool was opened by Ana Cole.", "Fees fell. " * 2000
    replies.write_text("\n".join(map(json.dumps, rows)))
    folder = root() / "data" / "models" / "tiny-llama"
    named = ["--method", "claim_p_true", "--model", f"generator={folder}"]
    table, said = scored(replies, capsys, "--unit", "sentence", *named)
    model, words = (one := load_model(folder)), one.tokenizer
    for sentence, value in zip(split_sentences(TEXT), table["claim_p_true"]):
        ask = (
            f"Question: {rows[0]['source']}\n Possible answer:{sentence}\n Is the possible answer:\n "
            "(A) True\n (B) False\n The possible answer is:"
        )
        chat = [dict(role="user", content=ask)]
        ids = words.apply_chat_template(chat, add_generation_prompt=True, return_tensors="pt")["input_ids"]
        with torch.inference_mode():
            logp = model.model(ids).logits[0, -1].log_softmax(-1)
        assert value == pytest.approx(-logp[words.convert_tokens_to_ids("ĠTrue")].item(), abs=1e-4)
    assert "claim_true_logp: 1 inputs did not fit the model and were cut" in said
    assert main(["score", str(replies), "--unit", "sentence", *named[:2]]) == 2
    assert "claim_p_true lacks claim_true_logp: --model generator=CHECKPOINT" in capsys.readouterr().err


def f1_of(encoder, claim, sentence):
    "BERTScore F1 of two texts, alone"
    return bertscore_f1(token_cosines(encoder, [(claim, sentence)])[0][0])


def cosine_of(encoder, claim, sentence):
    "Cosine of the embeddings of two texts, alone"
    one, other = (embed_texts(encoder, [text])[0][0] for text in (claim, sentence))
    return one @ other / np.linalg.norm(one) / np.linalg.norm(other)


def test_claims_of_a_file_without_tokens_are_scored_by_its_samples(replies, capsys):
    row = dict(id="a", text=TEXT, samples=["It rained.", "It rained."])
    replies.write_text(json.dumps(row))
    claims = replies.with_name("claims.csv")
    claims.write_text("document,claim,about\na,It rained.,\na,Ana Cole opened the pool.,Ana Cole\n")
    table, said = scored(replies, capsys, "--claims", str(claims))
    assert "msp" not in table and table["claim_unsupported"][0] == 0
    assert table["claim_content_words"].tolist() == [1, 2] and "by their tokens" not in said


def test_documents_that_a_table_holds_as_floats_are_whole_numbers(replies, capsys):
    claims = replies.with_name("claims.parquet")
    pd.DataFrame(dict(document=[1.0, 2.0], claim="It rained.")).to_parquet(claims)
    rows = [dict(id=i, text="It rained.", tokens=["It", " rained."], logprobs=[-1, -2]) for i in range(3)]
    replies.write_text("\n".join(map(json.dumps, rows)))
    ask = ["score", str(replies), "--method", "msp", "--claims", str(claims)]
    assert main([*ask, "--csv"]) == 0
    assert [line.split(",")[0] for line in capsys.readouterr().out.splitlines()[1:]] == ["1", "2"]
    pd.DataFrame(dict(document=[1.0, None, 5], claim="It rained.")).to_parquet(claims)
    assert main(ask) == 2
    assert "2 documents of the claims are no text of the file: nan, 5. " in capsys.readouterr().err


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--unit", "word"], "claim_luq: no sum, mean or largest of one number per token, so a word has no"),
        (["--unit", "sentence"], "claim_luq lacks claim_nli: add a column samples"),
        (["--explain"], "--unit sentence, or --claims FILE"),
    ],
)
def test_what_a_method_of_claims_needs(replies, capsys, options, said):
    code = main(["score", str(replies), "--method", "claim_luq", *options])
    shown = capsys.readouterr()
    assert said in shown.out + shown.err and code == (0 if "--explain" in options else 2)


def test_without_torch_scores_of_models_are_left_out(replies, capsys, monkeypatch):
    row = dict(id="a", text=TEXT, samples=["It rained.", "It snowed."])
    replies.write_text(json.dumps(row))
    monkeypatch.setattr("uetrust.scoring.score._torch_is_there", lambda: False)
    table, said = scored(replies, capsys, "--unit", "sentence")
    assert "claim_luq" not in table and {"claim_position", "selfcheck_unigram"} <= set(table)
    assert "because torch is missing: pip install 'uetrust[models]'" in said


def test_where_the_small_models_are_not_installed_the_rest_is_scored(replies, capsys, monkeypatch, tmp_path):
    row = dict(id="a", text=TEXT, samples=["It rained.", "It snowed."])
    replies.write_text(json.dumps(row))
    for name in ("uetrust.statistics.texts.providers.root", "uetrust.core.settings.root"):
        monkeypatch.setattr(name, lambda: tmp_path)
    for more in ([], ["--unit", "sentence"]):
        assert main(["score", str(replies), *more]) == 0
        shown = capsys.readouterr()
        assert "pip install uetrust-models" in shown.out and "Traceback" not in shown.err
    assert main(["score", str(replies), "--method", "lex_sim"]) == 0
    assert "uetrust-models" not in capsys.readouterr().out, "nothing that was named is left out"


def test_claims_about_a_text_without_samples(replies, capsys):
    "Their columns stay, empty and counted; where all claims are so, they are left out"
    rows = [dict(id="x", text=TEXT, samples=["It rained.", "It snowed."]), dict(id="y", text="Fees rose.")]
    replies.write_text("\n".join(map(json.dumps, rows)))
    claims = replies.with_name("claims.csv")
    claims.write_text("document,claim\nx,It rained.\ny,Fees rose.\n")
    table, said = scored(replies, capsys, "--claims", str(claims))
    assert table["claim_luq"].isna().tolist() == [False, True]
    assert "1 of 2 claims have no score by" in said and "their text has no samples" in said
    claims.write_text("document,claim\ny,Fees rose.\n")
    for names in ([], ["--method", "claim_luq"]):
        assert main(["score", str(replies), "--claims", str(claims), *names]) == 2
        assert " lacks " in capsys.readouterr().err
    table, _ = scored(replies, capsys, "--claims", str(claims), "--method", "claim_position")
    assert table["claim_position"].tolist() == [1]


def test_texts_that_are_left_out_or_have_no_numbers_are_counted(replies, capsys):
    rows = [json.loads(line) for line in replies.read_text().splitlines()]
    rows.append(dict(id="c", text=None))
    rows.append(dict(id="d", text="No.", tokens=["No", "."], logprobs=[-1, -9999]))
    replies.write_text("\n".join(map(json.dumps, rows)))
    table, said = scored(replies, capsys, "--unit", "sentence", "--method", "msp")
    assert table["msp"].isna().tolist() == [False] * 4 + [True]
    assert "left out: 1 missing text ('c')" in said and "1 of 5 sentences have no score" in said


def test_a_text_whose_list_cannot_be_the_likeliest_tokens_loses_its_own_score_only(replies, capsys):
    likely = dict(logprobs=[-0.1, -0.1], top_logprobs=[dict(a=-0.1, b=-3)] * 2)
    odd = dict(logprobs=[-0.1, -1.2], top_logprobs=[dict(a=-0.1, b=-3), {" a": -1.2, "b": -20}])
    rows = [dict(id="x", **likely), dict(id="y", **odd)]
    replies.write_text("\n".join(json.dumps(row | dict(text="a a", tokens=["a", " a"])) for row in rows))
    table, said = scored(replies, capsys, "--unit", "sentence", "--method", "top_k_entropy_lower")
    assert table["top_k_entropy_lower"].isna().tolist() == [False, True]
    assert "1 of 2 sentences have no score by top_k_entropy_lower" in said


def test_claims_and_a_unit_are_two_things(replies, capsys):
    claims = replies.with_name("claims.csv")
    claims.write_text("document,claim\na,It rained.\n")
    assert main(["score", str(replies), "--claims", str(claims), "--unit", "word"]) == 2
    assert "--claims scores the claims of a table: leave it out, or --unit word" in capsys.readouterr().err
