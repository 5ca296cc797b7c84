"""Training on e-mails: the stream of AESLC's training split, the tokenizer, and both recipes."""

import json
import random
import sys

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from uetrust.core.settings import mirror, root
from uetrust.data.checker import check_summary
from uetrust.data.download import DataNotAtHand
from uetrust.data.loaders import HUB_ROWS
from uetrust.dev.training import tasks, train
from uetrust.generation.decoding import Decoding
from uetrust.generation.local import generate_texts
from uetrust.models.likelihoods import UNIEVAL_QUESTIONS
from uetrust.models.load import load_model

real = pytest.mark.skipif(mirror() is None, reason="UETRUST_MIRROR is not at hand")


# The stream
@given(st.integers(1, 7), st.integers(0, 30), st.integers(1, 30), st.integers(0, 3))
def test_a_stretch_of_the_stream_is_the_same_wherever_reading_begins(size, start, n, seed):
    assert (
        tasks.epoch_positions(start, n, size, seed).tolist()
        == tasks.epoch_positions(0, 70, size, seed)[start : start + n].tolist()
    )


def test_every_epoch_holds_every_row_once_in_an_order_of_its_own():
    epochs = tasks.epoch_positions(0, 60, 20).reshape(3, 20)
    assert (np.sort(epochs) == np.arange(20)).all() and len(np.unique(epochs, axis=0)) == 3
    assert (tasks.epoch_positions(0, 20, 20, 1) != epochs[0]).any()


# Real e-mails: what is asserted is a number or a truth value, so that a failure prints no text of them
@pytest.fixture(scope="module")
def toks():
    return {recipe.family: recipe.tokenizer(recipe.family, 0) for recipe in train.AESLC_RECIPES.values()}


@real
def test_emails_are_those_of_the_split_and_an_epoch_is_all_of_them():
    n = HUB_ROWS["aeslc"]["train"]
    first, second, all_of_them = (
        sorted(pair)
        for pair in (
            tasks.emails(0, n),
            tasks.emails(n, n),
            map(tuple, tasks.aeslc("train")[["email", "subject"]].to_numpy()),
        )
    )
    assert (first == all_of_them, second == all_of_them) == (True, True)
    assert len({e for e, _ in tasks.emails(0, 900, split="validation")} & {e for e, _ in first}) == 0


@real
def test_the_tokenizers_write_unseen_emails_back_and_need_few_tokens(toks):
    seen = [text for pair in tasks.emails(0, 300, split="validation") for text in pair]
    for tokenizer in toks.values():
        ids = tokenizer(seen, verbose=False)["input_ids"]
        assert sum(tokenizer.decode(i, skip_special_tokens=True) != text for i, text in zip(ids, seen)) == 0
        assert (
            not any(tokenizer.unk_token_id in i for i in ids)
            and len(tokenizer) == tasks.MAIL_VOCABULARY
            and tokenizer.model_max_length == tasks.MAIL_WINDOW
        )
        assert sum(map(len, ids)) / sum(len(text.split()) for text in seen) < 1.9
    specials = {
        family: tokenizer.convert_ids_to_tokens(tokenizer("")["input_ids"])
        for family, tokenizer in toks.items()
    }
    assert specials == dict(bart=["<s>", "</s>"], t5=["</s>"])


@real
@pytest.mark.parametrize("name", train.AESLC_RECIPES)
def test_pools_are_repeatable_fresh_and_cut_to_the_window(name, toks, monkeypatch):
    monkeypatch.setattr(train, "POOL_STEPS", 10)
    recipe = train.recipe(name)
    tok = toks[recipe.family]
    late = recipe.steps // 15  # Past half of the training, when there are no excerpts, and inside an epoch
    first, again, second = (train.draw_pool(recipe, tok, k, recipe.steps) for k in (late, late, late + 1))
    assert first == again and len(first) == 10 and sum(map(len, first)) == 10 * recipe.batch
    found = [e for example in first for e in example]
    assert max(len(e.ids) for e in found) == tasks.MAIL_WINDOW and {e.ids[-1] for e in found} == {
        e.target[-1] for e in found
    } == {tok.eos_token_id}
    subjects = {subject for _, subject in tasks.emails(late * len(found), len(found))}
    assert len({tok.decode(e.target, skip_special_tokens=True) for e in found} ^ subjects) == 0
    n, size = len(found), HUB_ROWS["aeslc"]["train"]
    assert {tuple(e.ids) for example in second for e in example} == {
        tuple(e.ids) for e in train._subjects(tasks.emails((late + 1) * n, n), None, tok)
    }  # Some e-mails stand twice in the data, so places are compared
    assert not set(tasks.epoch_positions(late * n, n, size)) & set(
        tasks.epoch_positions((late + 1) * n, n, size)
    )


@real
def test_a_training_begins_with_excerpts_that_stand_in_the_email_and_ends_with_subjects():
    def excerpts(done, split="train"):
        return np.mean(
            [
                " ".join(target.split()) in " ".join(mail.split()[:120]) and target != subject
                for (mail, target), (_, subject) in zip(
                    train._mails(0, 400, done, 0, split), tasks.emails(0, 400, split=split)
                )
            ]
        )

    assert (
        0.88 < excerpts(0) <= 1
        and 0.35 < excerpts(0.25) < 0.55
        and excerpts(0.5) == excerpts(0, "validation") == 0
    )


@real
@pytest.mark.parametrize("name", train.AESLC_RECIPES)
def test_a_smoke_training_lowers_the_loss_and_writes_subjects_of_long_emails(
    name, toks, tmp_path, monkeypatch
):
    recipe = train.recipe(name)
    monkeypatch.setattr(train, "POOL_STEPS", 10)
    monkeypatch.setitem(
        train.AESLC_RECIPES, name, recipe._replace(batch=4, tokenizer=lambda family, seed: toks[family])
    )
    monkeypatch.setattr(train, "root", lambda: pytest.fail("--out was given, yet the checkout was used"))
    train.train_command(["--data", "aeslc", name, "--out", str(tmp_path), "--steps", "30"])
    first, _, last = train._training_curves(tmp_path)["loss"]
    assert last < first - 0.3
    assert json.loads((tmp_path / name / "tokenizer.json").read_text())["truncation"] is None
    assert not (tmp_path / name / "checkpoint.safetensors").exists()
    model, emails = (
        load_model(str(tmp_path / name), device="cpu"),
        [e for e, _ in tasks.emails(0, 200, split="validation")],
    )
    length = [len(i) for i in model.tokenizer(emails, verbose=False)["input_ids"]]
    long, short = emails[int(np.argmax(length))], emails[int(np.argmin(length))]
    before, after = generate_texts(
        model,
        pd.DataFrame(dict(id=["long", "short"], source=[long, short])),
        Decoding(samples=0, max_new_tokens=12),
    )
    assert (
        model.window == tasks.MAIL_WINDOW
        and max(length) - tasks.MAIL_WINDOW <= before["cut"] < max(length) - tasks.MAIL_WINDOW + 8
        and before["truncated"]
        and after["cut"] == 0
    )
    assert 1 <= len(before["ids"]) <= 12


# The command
@pytest.mark.parametrize(
    "argv,names,home",
    [
        ([], train.RECIPES, "models"),
        (["--data", "bulletin"], train.RECIPES, "models"),
        (["--data", "aeslc"], train.AESLC_RECIPES, "cache/models"),
        (["aeslc-t5"], ["aeslc-t5"], "cache/models"),
    ],
)
def test_data_chooses_the_models_and_their_folder(argv, names, home, monkeypatch):
    trained = []
    monkeypatch.setattr(train, "train_model", lambda *a: trained.append(a))
    train.train_command([*argv, "--seed", "3"])
    assert trained == [(n, root() / "data" / home, 3, 0) for n in names]


def test_what_is_trained_on_emails_stays_out_of_git():
    assert {done.home for done in train.AESLC_RECIPES.values()} == {"cache/models"} and "data/cache/" in (
        root() / ".gitignore"
    ).read_text().split()


def test_without_emails_the_usual_error_names_the_file(tmp_path, monkeypatch):
    for k in ("UETRUST_MIRROR", "UETRUST_CACHE"):
        monkeypatch.setenv(k, str(tmp_path / "none"))
    monkeypatch.setenv("UETRUST_OFFLINE", "1")
    monkeypatch.setitem(sys.modules, "datasets", None)
    tasks._mail_rows.cache_clear()
    with pytest.raises(DataNotAtHand, match="aeslc/train.jsonl.gz.*UETRUST_MIRROR"):
        train.train_model("aeslc-bart", tmp_path)
    assert not list(tmp_path.iterdir())


def test_a_pair_of_texts_is_framed_as_in_bart_t5_and_bert(texts):
    frames = dict(bart="<s> Yes </s> </s> Yes </s>", t5="Yes </s> Yes </s>", bert="[CLS] Yes [SEP] Yes [SEP]")
    for family, frame in frames.items():
        tokenizer = tasks.task_tokenizer(texts, family)
        assert (
            tokenizer.convert_ids_to_tokens(tokenizer("Yes", "Yes")["input_ids"])
            == frame.replace("Yes", "ĠYes").split()
        )
    assert tokenizer("Yes", "Yes")["token_type_ids"] == [0, 0, 0, 1, 1]


def test_a_conversation_has_the_ids_of_the_chat_template(texts):
    tokenizer = tasks.task_tokenizer(texts, "llama")
    for messages in tasks.training_conversations(
        tasks.training_bulletins(0, 10, 0.5), np.random.default_rng(0)
    ):
        assert (
            train._chat_example(messages, tokenizer).ids
            == tokenizer(tokenizer.apply_chat_template(messages, tokenize=False), add_special_tokens=False)[
                "input_ids"
            ]
        )


def test_excerpts_say_nothing_that_the_bulletin_does_not_and_derive_only_from_what_is_left():
    for row, short in zip(tasks.training_bulletins(0, 60), tasks.training_bulletins(0, 60, 1.0)):
        verdict = check_summary(short.source, row.facts, row.main)
        assert not verdict.labels.any() and not verdict.unparsed.any()
        verdict = check_summary(short.reference, short.facts, short.main)
        assert not verdict.labels.any() and verdict.relevance == 1
        assert len(short.facts) <= len(row.facts)


def test_answers_about_a_summary_are_those_of_the_checker():
    row, rng = tasks.training_bulletins(0, 1)[0], random.Random(0)

    def answers(summary):
        messages = tasks._judge_conversation(row, summary, rng)
        return {
            question["content"].split("Summary: ")[-1]: answer["content"]
            for question, answer in zip(messages[::2], messages[1::2])
        }

    assert (
        all(answer in ("True", "5") for answer in answers(row.reference).values())
        and len(answers(row.reference)) == 6
    )
    broken = {
        question.split("Rate the ")[1].split()[0]: answer
        for question, answer in answers("Council the the of.").items()
        if "Rate" in question
    }
    assert broken == dict(consistency="5", relevance="1", coherence="1", fluency="1", overall="1")


def test_questions_are_worded_as_unieval_and_balanced():
    questions = tasks.yes_no_questions(tasks.training_bulletins(0, 400), np.random.default_rng(0))
    assert all(prompt.startswith("question: Is this ") and " </s> " in prompt for prompt, _ in questions)
    for dimension in tasks.UNIEVAL_VARIANTS:
        answer = [
            yes
            for prompt, yes in questions
            if prompt.startswith(UNIEVAL_QUESTIONS[dimension].split(" </s>")[0])
        ]
        assert 0.35 < np.mean([yes == "Yes" for yes in answer]) < 0.65, dimension


def test_words_in_disorder_are_shown_as_often_as_wanted_and_are_never_right():
    def prompts_of(disorder):
        return tasks.yes_no_questions(
            tasks.training_bulletins(0, 400), np.random.default_rng(0), (0, 0, 1, 0), disorder
        )

    def jumbled(disorder):
        texts_shown = [
            (prompt.split("claim: ")[1].split(" </s>")[0], answer, row)
            for (prompt, answer), row in zip(prompts_of(disorder), tasks.training_bulletins(0, 400))
        ]
        return [
            answer
            for sentence, answer, row in texts_shown
            if check_summary(sentence, row.facts, row.main).fluency < 1
        ]

    assert jumbled(0.0) == [] and set(jumbled(0.5)) == {"No"}
    assert (
        0.2 < len(jumbled(0.5)) / 400 < 0.3 and 0.42 < len(jumbled(1.0)) / 400 < 0.58
    )  # Half of the texts should be good
