"""Prompted statistics, attention, Focus and beams: equal to a plain forward pass over one text at a time.

They do not depend on the order of work.
"""

import re
from dataclasses import replace

import numpy as np
import pytest
import torch

from tests.helpers.readings import framed
from tests.helpers.writers import SAMPLES, S, files, tiny
from uetrust.core.settings import root
from uetrust.data.datasets import load_samples
from uetrust.generation.bank import read_bank
from uetrust.generation.local import (
    beam_hypotheses,
    checkpoint_settings,
    decode_batch,
    fill_local_bank,
    render_prompts,
)
from uetrust.models.forward import DropoutMask
from uetrust.models.load import load_model
from uetrust.scoring.methods import score_generations
from uetrust.statistics.beams import compute_beams, ensemble_forward
from uetrust.statistics.names import score_runs
from uetrust.statistics.passes import (
    compute_attention,
    compute_focus,
    compute_keywords,
    compute_likelihoods,
    focus_surprisal_topk,
    inverse_document_frequency,
    keyword_mask,
    spacy_keyword_tagger,
)
from uetrust.statistics.prompted import (
    compute_elicited_attention,
    compute_replies,
    local_answerer,
    rating_to_percent,
    split_question,
)
from uetrust.statistics.scores import load_scores
from uetrust.statistics.table import ATTENTION_STATISTICS, PASSES, read_statistics
from uetrust.ue.attention import focus_surprisal_full
from uetrust.ue.reflexive import verbalized_2s

reg = load_scores()

SHIPPED = dict(bart="tiny-bart", llama="tiny-llama")
ASK = "Bulletin: {source} Summary: {summary} Is the summary true? Answer True or False."
RATE = "Bulletin: {source} Summary: {summary} Rate the consistency of the summary from 1 to 5."
D = replace(S, samples=2, max_new_tokens=40, prompt="Summarize the bulletin: {source}", document="{source}")
THREE = load_samples("bulletin:test:3")


@pytest.fixture(scope="module", params=SHIPPED)
def written(request, tmp_path_factory):
    "(kind, shipped model, folder of a bank of three bulletins)"
    model = load_model(root() / "data" / "models" / SHIPPED[request.param], device="cpu")
    return (
        request.param,
        model,
        fill_local_bank(
            tmp_path_factory.mktemp(request.param) / "texts",
            "bulletin",
            model.id,
            THREE,
            model,
            D,
            progress=False,
        ),
    )


@pytest.fixture(scope="module")
def llama(tmp_path_factory):
    model = load_model(root() / "data" / "models" / "tiny-llama", device="cpu")
    return model, fill_local_bank(
        tmp_path_factory.mktemp("chat") / "texts", "bulletin", "llama", THREE, model, D, progress=False
    )


def kind_of(bank, kind):
    return read_bank(bank).query(f"kind=={kind!r}").set_index("sample")


@torch.no_grad()
def plain(model, prompt, text):
    # The model on one text: log p [L,V], states [L,D], attention [layers,H,T,T], positions before the text
    if model.kind == "causal":
        out, start = (
            model.model(torch.tensor([[*prompt, *text]]), output_hidden_states=True, output_attentions=True),
            len(prompt),
        )
    else:
        out, start = (
            model.model(
                input_ids=torch.tensor([prompt]),
                decoder_input_ids=torch.tensor([[model.model.config.decoder_start_token_id, *text]]),
                output_hidden_states=True,
                output_attentions=True,
            ),
            1,
        )
    rows = slice(start - 1, start - 1 + len(text))
    state = (out.hidden_states if model.kind == "causal" else out.decoder_hidden_states)[-1][0, rows]
    return (
        out.logits[0, rows].log_softmax(-1).double().numpy(),
        state.numpy(),
        out.attentions if model.kind == "causal" else out.decoder_attentions,
        start,
    )


@pytest.fixture
def eager(written):
    written[1].model.set_attn_implementation("eager")
    yield written
    written[1].model.set_attn_implementation("sdpa")


def asked_of(model):
    return dict(
        zip(
            THREE["id"],
            (ids for ids, _ in render_prompts(model, list(THREE["source"]), checkpoint_settings(model, D))),
        )
    )


def test_states_of_drawn_texts_are_those_that_write_the_end(written, tmp_path):
    _, model, bank = written
    got = read_statistics(
        compute_likelihoods(tmp_path / "x", bank, THREE, model, PASSES["sample_hidden"], D, progress=False)
    )
    texts, asked = read_bank(bank).query("kind=='sample'"), asked_of(model)
    assert len(got) == len(texts) == 6
    for row, text in zip(got.itertuples(), texts.itertuples()):
        assert np.abs(row.decoder_last - plain(model, asked[text.sample], text.ids)[1][-1]).max() < 1e-4


def test_largest_weights_are_those_of_a_plain_pass(eager, tmp_path):
    _, model, bank = eager
    got, asked = (
        read_statistics(
            compute_attention(tmp_path / "x", bank, THREE, model, D, "attention_max", progress=False)
        ).set_index("sample"),
        asked_of(model),
    )
    assert list(got) == ["kind", "k", "attention_max"]
    for source, text in kind_of(bank, "greedy").iterrows():
        weights, start = plain(model, asked[source], text["ids"])[2:]
        weights, length = torch.cat(weights).numpy(), len(text["ids"])
        want = [
            [weights[:, :, start + i - 1, start + j].max() if j < i else 0 for j in range(length)]
            for i in range(length)
        ]
        np.testing.assert_allclose(got.at[source, "attention_max"], want, atol=1e-5)


def test_focus_is_the_doubt_about_whole_rows(written, tmp_path):
    _, model, bank = written
    docs = list(load_samples("bulletin:train:20")["source"])
    got, asked = (
        read_statistics(compute_focus(tmp_path / "x", bank, THREE, model, D, docs, progress=False)).set_index(
            "sample"
        ),
        asked_of(model),
    )
    have = [set(model.tokenizer(document, add_special_tokens=False).input_ids) for document in docs]
    idf = np.array(
        [
            np.log(21 / (sum(token in tokens for tokens in have) + 1))
            for token in range(model.text_config.vocab_size)
        ]
    )
    assert np.array_equal(inverse_document_frequency(model.tokenizer, docs, len(idf)), idf) and idf.min() == 0
    for source, text in kind_of(bank, "greedy").iterrows():
        want = focus_surprisal_full(plain(model, asked[source], text["ids"])[0], np.array(text["ids"]), idf)
        np.testing.assert_allclose(got.at[source, "focus_surprisal"], want, rtol=1e-3)


def test_doubt_does_not_exist_where_no_word_is_likely():
    assert np.isnan(
        focus_surprisal_topk(np.array([1]), np.array([[1, 2]]), np.log([[0.009, 0.008]]), np.ones(3))
    ).all()


def test_a_question_looks_where_a_plain_pass_looks(llama, tmp_path):
    model, bank = llama
    got = read_statistics(
        compute_elicited_attention(tmp_path / "x", bank, THREE, model, ASK, D, progress=False)
    ).set_index("sample")
    after = model.tokenizer(
        " Is the summary true? Answer True or False. [/INST]", add_special_tokens=False
    ).input_ids
    model.model.set_attn_implementation("eager")
    try:
        for sample in THREE.itertuples():
            ids = np.array(kind_of(bank, "greedy").at[sample.id, "ids"])
            words = ~np.isin(
                ids, model.tokenizer.all_special_ids
            )  # A text that was ended by the limit has no end token
            assert words.sum() >= len(ids) - 1 and got.at[sample.id, "cut"] == 0
            before = model.tokenizer(
                f"<s>[INST] Bulletin: {sample.source} Summary:", add_special_tokens=False
            ).input_ids
            with torch.no_grad():
                weights = (
                    torch.cat(
                        model.model(
                            torch.tensor([[*before, *ids[words], *after]]), output_attentions=True
                        ).attentions
                    )
                    .mean((0, 1))[-1]
                    .numpy()
                )
            want = np.zeros(len(ids))
            want[words] = weights[len(before) : len(before) + words.sum()]
            np.testing.assert_allclose(got.at[sample.id, "elicited_attention"], want, atol=1e-6)
    finally:
        model.model.set_attn_implementation("sdpa")


def test_of_a_long_source_only_its_end_is_cut_from_a_question(llama, tmp_path):
    model, bank = llama
    few = replace(D, max_prompt=60)
    got = read_statistics(
        compute_elicited_attention(tmp_path / "x", bank, THREE, model, ASK, few, progress=False)
    )
    whole = read_statistics(
        compute_elicited_attention(tmp_path / "y", bank, THREE, model, ASK, D, progress=False)
    )
    assert (got["cut"] > 0).all() and not any(
        np.allclose(short, long)
        for short, long in zip(got["elicited_attention"], whole["elicited_attention"])
    )
    said = [(~np.isin(ids, model.tokenizer.all_special_ids)).sum() for ids in kind_of(bank, "greedy")["ids"]]
    for sample, n, cut in zip(THREE.itertuples(), said, got["cut"]):
        assert (
            sum(
                len(model.tokenizer(part, add_special_tokens=False).input_ids)
                for part in split_question(model, ASK, sample.source)
            )
            + n
            - cut
            == 60
        )


@pytest.mark.parametrize(
    "ask",
    ["{source} is {summary}", "{summary} of {source}?", "{source}?", "{source} {summary} or {summary}?"],
)
def test_a_question_that_cannot_look_back_is_refused(llama, ask, tmp_path):
    model, bank = llama
    with pytest.raises(ValueError, match="needs {source} before {summary} and words behind it"):
        compute_elicited_attention(tmp_path / "x", bank, THREE, model, ask, D, progress=False)


def test_attention_belongs_to_the_tokens_of_the_writer(llama, tmp_path):
    _, bank = llama
    with pytest.raises(ValueError, match="was not written by llama"):
        compute_elicited_attention(
            tmp_path / "x", bank, THREE, tiny("llama"), "w1 {source} w2 {summary} w3", D, progress=False
        )


def test_replies_are_what_plain_generation_gives_and_are_read_strictly(llama, tmp_path):
    model, bank = llama
    got = read_statistics(
        compute_replies(
            tmp_path / "x",
            bank,
            THREE,
            RATE,
            local_answerer(model, replace(D, max_new_tokens=8)),
            dict(title="verbal_2s"),
            ("1", "5"),
            progress=False,
        )
    ).set_index("sample")
    for sample in THREE.itertuples():
        text = kind_of(bank, "greedy").at[sample.id, "text"]
        ids = model.tokenizer(
            f"<s>[INST] Bulletin: {sample.source} Summary: {text} "
            "Rate the consistency of the summary from 1 to 5. [/INST]",
            add_special_tokens=False,
            return_tensors="pt",
        ).input_ids
        with torch.no_grad():
            out = model.model.generate(
                ids, attention_mask=torch.ones_like(ids), max_new_tokens=8, do_sample=False
            )[0, ids.shape[1] :]
        reply = model.tokenizer.decode(out, skip_special_tokens=True).strip()
        assert got.at[sample.id, "reply"] == reply and reply in "12345", (
            "it was taught to answer with one number"
        )
        assert verbalized_2s(got.at[sample.id, "stated"]) == pytest.approx(1 - (int(reply) - 1) / 4)


@pytest.mark.parametrize(
    "reply,stated",
    [
        ("1", "0%"),
        ("5", "100%"),
        ("3.", "50%"),
        ("0", ""),
        ("6", ""),
        ("-1", ""),
        ("4 or 5", ""),
        ("", ""),
        ("four", ""),
        ("4/5", ""),
    ],
)
def test_a_reply_off_the_scale_is_missing(reply, stated):
    assert rating_to_percent(reply, ("1", "5")) == stated


def test_keywords_are_the_tokens_that_share_a_letter_with_one(written, tmp_path):
    _, model, bank = written

    def tag(texts):
        return [
            [match.span() for match in re.finditer(r"[A-Z]\w*(?: [A-Z]\w*)*|\d+", text)] for text in texts
        ]

    got = read_statistics(
        compute_keywords(tmp_path / "x", bank, model.tokenizer, tag, "capitals", progress=False)
    ).set_index("sample")
    for source, text in kind_of(bank, "greedy").iterrows():
        words = [model.tokenizer.decode([i], skip_special_tokens=True) for i in text["ids"]]
        assert (
            got.at[source, "keywords"].tolist() == [bool(re.match(r"[A-Z\d]", word)) for word in words]
            and got.at[source, "keywords"].any()
        )


def test_a_tagger_that_is_not_there_says_what_to_install():
    with pytest.raises(
        LookupError, match="pip install spacy, then python -m spacy download no-such-pipeline"
    ):
        spacy_keyword_tagger("no-such-pipeline")


def test_a_keyword_of_two_words_does_not_reach_the_token_before_it():
    tok = tiny("bart").tokenizer
    ids = tok("w1 w2 w3 w4").input_ids
    text = tok.decode(ids)
    assert keyword_mask(tok, ids, [(text.index("w2"), text.index("w3") + 2)]).tolist() == [
        False,
        True,
        True,
        False,
    ]
    assert not keyword_mask(tok, ids, [(text.index("w2") - 1, text.index("w2"))]).any(), (
        "a place without a letter"
    )


# Hypotheses of an ensemble


@pytest.fixture(scope="module")
def bart(tmp_path_factory):
    model = load_model(root() / "data" / "models" / "tiny-bart", device="cpu")
    return model, fill_local_bank(
        tmp_path_factory.mktemp("bart") / "texts", "bulletin", "bart", THREE, model, D, progress=False
    )


@torch.no_grad()
def by_members(model, prompt, text, seeds, rate):  # log p [M,L,V] by whole passes over one text
    ids, start, out = torch.tensor([prompt]), model.model.config.decoder_start_token_id, []
    for seed in seeds:
        member = DropoutMask(seed, rate)
        member.begin(0)
        with member:
            states = model.model.get_encoder()(input_ids=ids)
        member.begin(1)
        with member:
            out.append(
                model.model(
                    encoder_outputs=states,
                    attention_mask=torch.ones_like(ids),
                    decoder_input_ids=torch.tensor([[start, *text[:-1]]]),
                )
                .logits[0]
                .double()
                .log_softmax(-1)
                .numpy()
            )
    return np.stack(out)


def test_hypotheses_have_the_score_of_the_search_and_the_terms_of_whole_passes(bart, tmp_path):
    model, bank = bart
    got, asked = (
        read_statistics(
            compute_beams(tmp_path / "x", bank, THREE, model, D, beams=4, members=3, progress=False)
        ),
        asked_of(model),
    )
    assert got.groupby("sample").size().tolist() == [4] * 3
    for hypothesis in got.itertuples():
        logp = by_members(model, asked[hypothesis.sample], hypothesis.ids, [1, 2, 3], 0.1)
        mixture, own = np.exp(logp).mean(0), logp[:, np.arange(len(hypothesis.ids)), hypothesis.ids]
        entropy = -(mixture * np.log(mixture)).sum(-1)
        np.testing.assert_allclose(hypothesis.pe_tu, entropy, atol=1e-5)
        np.testing.assert_allclose(hypothesis.pe_rmi, -(mixture * logp.mean(0)).sum(-1) - entropy, atol=1e-5)
        free = (
            slice(None, -1) if len(hypothesis.ids) == D.max_new_tokens else slice(None)
        )  # The last token is forced there
        np.testing.assert_allclose(hypothesis.member_logp[:, free], own[:, free], atol=1e-4)
        assert hypothesis.length == len(hypothesis.ids) + 1 and hypothesis.score == pytest.approx(
            np.log(np.exp(own).mean(0))[free].sum() / hypothesis.length, abs=1e-4
        )


@pytest.mark.parametrize("kind", ["bart", "t5", "llama"])
@pytest.mark.parametrize("penalty", [None, 0.0, 2.0])
def test_members_that_drop_nothing_search_as_the_network_does(kind, penalty):
    model = tiny(kind)
    model.model.generation_config.length_penalty = penalty
    settings = replace(checkpoint_settings(model, S), beams=3)
    asked = [ids for ids, _ in render_prompts(model, list(SAMPLES["source"][:5]), settings)]
    got = beam_hypotheses(
        model, asked, settings, lambda ids, mask: ensemble_forward(model, ids, mask, 3, [1, 2], 0.0)
    )
    assert [[ids for ids, _ in found] for found in got] == decode_batch(model, asked, settings)
    for i, found in enumerate(got):
        for ids, score in found:
            logp = plain_of(model, asked[i], ids)
            free = logp[:-1] if kind == "bart" and len(ids) == S.max_new_tokens else logp
            assert score == pytest.approx(
                free.sum() / (len(ids) + 1) ** (1 if penalty is None else penalty), rel=1e-4
            )


def plain_of(model, prompt, text):
    return plain(model, list(prompt), list(text))[0][np.arange(len(text)), text]


def test_members_search_for_something_else_than_the_network():
    model = tiny("bart")
    settings = replace(checkpoint_settings(model, S), beams=3)
    asked = [ids for ids, _ in render_prompts(model, list(SAMPLES["source"][:5]), settings)]

    def found(seeds):
        return [
            texts[0][0]
            for texts in beam_hypotheses(
                model, asked, settings, lambda ids, mask: ensemble_forward(model, ids, mask, 3, seeds, 0.3)
            )
        ]

    assert (
        found([1]) != found([2])
        and found([1, 2]) not in (found([1]), found([2]))
        and found([1, 2]) == found([2, 1])
    )
    assert "forward" not in vars(model.model), "it answers for itself again"


# Order of work


def every(model, texts, out, **options):
    "Each reading that a causal or sequence-to-sequence model gives"
    compute_likelihoods(
        out / "sample_hidden",
        texts,
        SAMPLES[:7],
        model,
        PASSES["sample_hidden"],
        S,
        progress=False,
        **options,
    )
    for name in ATTENTION_STATISTICS:
        compute_attention(out / name, texts, SAMPLES[:7], model, S, name, progress=False, **options)
    compute_focus(out / "focus", texts, SAMPLES[:7], model, S, SAMPLES["source"], progress=False, **options)
    compute_keywords(
        out / "keywords",
        texts,
        model.tokenizer,
        lambda drawn: [[(0, 2)] for _ in drawn],
        "two letters",
        progress=False,
        **options,
    )
    compute_replies(
        out / "verbal_2s",
        texts,
        SAMPLES[:7],
        "w1 {source} w2 {summary} w3",
        local_answerer(model, S),
        dict(title="verbal_2s"),
        progress=False,
        **options,
    )
    compute_replies(
        out / "verbal_1s",
        texts,
        SAMPLES[:7],
        "w1 {source} w3",
        local_answerer(model, S),
        dict(title="verbal_1s"),
        progress=False,
        **options,
    )
    if model.kind == "causal":
        compute_elicited_attention(
            out / "elicited",
            texts,
            SAMPLES[:7],
            model,
            "w1 {source} w2 {summary} w3",
            S,
            progress=False,
            **options,
        )
    else:
        compute_beams(
            out / "beams", texts, SAMPLES[:7], model, S, beams=2, members=2, progress=False, **options
        )
    return out


@pytest.mark.parametrize("kind", ["bart", "llama"])
def test_same_bytes_for_any_number_of_workers_and_after_a_restart(kind, tmp_path):
    model = framed(kind)
    texts = fill_local_bank(
        tmp_path / "one" / "texts", "toy", kind, SAMPLES[:7], model, S, size=3, progress=False
    )
    one, many = every(model, texts, tmp_path / "one"), tmp_path / "many"
    for worker in ((1, 2), (0, 2)):
        every(model, texts, many, worker=worker)
    names = [path.name for path in many.iterdir()]
    whole = {name: files(one / name) for name in names}
    assert (
        len(names) == 8
        and {name: files(many / name) for name in names} == whole
        and all(len(contents) == 4 for contents in whole.values())
    )
    for name in names:
        (one / name / "00001.parquet").unlink()
    every(model, texts, one)
    assert {name: files(one / name) for name in names} == whole
    table = score_generations(one, samples=SAMPLES, reg=reg, progress=False)
    made = {"eigen_score", "focus", "verbalized_1s", "verbalized_2s"} | (
        {"t_tu_he2024", "t_rmi_he2024", "s_tu_he2024", "s_rmi_he2024"} if kind == "bart" else set()
    )
    assert made <= set(table["name"]) and "csl" in table.attrs["missing"], (
        "the weights of csl need log p of the same tokens"
    )
    assert (
        table[table["name"].isin(["verbalized_1s", "verbalized_2s"])]["note"].str.contains(
            "no confidence|scale"
        )
    ).all(), "words without a number say nothing, and are missing"
    if kind == "bart":
        assert table[table["name"].str.endswith("_he2024") & table["name"].isin(made)]["value"].notna().all()


def test_hypotheses_are_a_list_per_source(bart, tmp_path):
    model, bank = bart
    compute_beams(bank.parent / "beams", bank, THREE, model, D, beams=2, members=2, progress=False)
    (run,) = score_runs(bank.parent)
    rows = read_statistics(bank.parent / "beams")
    for i, source in enumerate(run.samples):
        mine = rows[rows["sample"] == source]
        assert (
            run["beam_score"][i] == mine["score"].tolist()
            and run["beam_length"][i] == mine["length"].tolist()
        )
        assert all(
            logp.shape == (2, n - 1) and len(terms) == n - 1
            for logp, terms, n in zip(run["beam_member_logp"][i], run["beam_pe_tu"][i], run["beam_length"][i])
        )
