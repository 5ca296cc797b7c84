"""The trainer of the tiny models: tokenizers, tasks, the loop and its resume."""

import numpy as np
import pytest
import torch
from safetensors import safe_open
from transformers import AutoTokenizer

from uetrust.data.bulletins import BULLETIN_SPLITS, bulletins
from uetrust.dev.training import tasks, train
from uetrust.models.load import load_model

SMALL = dict(d_model=32, encoder_layers=1, decoder_layers=1, encoder_ffn_dim=64, decoder_ffn_dim=64)


def bart(**changes):
    recipe = train.RECIPES["tiny-bart"]
    return recipe._replace(**dict(config=recipe.config | SMALL, batch=8, steps=20) | changes)


@pytest.fixture(scope="module")
def tok(texts):
    return tasks.task_tokenizer(texts, "bart")


@pytest.mark.parametrize("family", tasks.SPECIAL_TOKENS)
def test_tokenizers_write_every_split_back_and_load_without_the_hub(family, texts, tmp_path):
    name = {recipe.family: n for n, recipe in train.RECIPES.items()}[family]
    made = tasks.task_tokenizer(texts, family)
    made.save_pretrained(tmp_path)
    getattr(__import__("transformers"), train.RECIPES[name].cls).config_class().save_pretrained(tmp_path)
    loaded = AutoTokenizer.from_pretrained(tmp_path)
    for split in BULLETIN_SPLITS:
        for text in bulletins(split, 30)["source"]:
            ids = loaded(text)["input_ids"]
            assert ids == made(text)["input_ids"]
            assert loaded.unk_token_id not in ids
            assert loaded.decode(ids, skip_special_tokens=True) == text
    assert 600 <= len(loaded) <= 1000
    assert loaded.decode(loaded("Zoë, 日本!")["input_ids"], skip_special_tokens=True) == "Zoë, 日本!"


def test_names_of_the_shifted_split_are_not_in_the_vocabulary(tok):
    length = {
        split: np.mean(
            [
                len(tok.tokenize(person))
                for row in bulletins(split, 20).itertuples()
                for fact in row.facts
                if (person := fact.actor)
            ]
        )
        for split in ("test", "shifted")
    }
    assert length["test"] == 2 < length["shifted"] - 1


@pytest.mark.parametrize("name", [*train.RECIPES, *train.INTERMEDIATE_RECIPES])
def test_a_few_steps_lower_the_loss_of_every_model(name, texts):
    recipe = train.recipe(name)
    small = dict(
        d_model=32,
        d_kv=8,
        d_ff=64,
        encoder_ffn_dim=64,
        decoder_ffn_dim=64,
        hidden_size=32,
        intermediate_size=64,
    )
    recipe = recipe._replace(
        config=recipe.config | {k: value for k, value in small.items() if k in recipe.config}, batch=8
    )
    tok = tasks.task_tokenizer(texts, recipe.family)
    model, batches = train.build_model(recipe, tok), train.draw_pool(recipe, tok, 0, 1000)[:4]
    opts = train._optimizers(model, recipe)
    losses = [np.mean([train._update(model, opts, batch, 2e-3) for batch in batches]) for _ in range(4)]
    assert losses[-1] < 0.97 * losses[0]


def test_a_killed_run_ends_with_the_weights_of_an_undisturbed_one(tok, tmp_path, monkeypatch):
    monkeypatch.setattr(train, "POOL_STEPS", 5)

    def run(path):
        recipe = bart()
        model = train.build_model(recipe, tok)
        return model, train._fit_recipe(model, recipe, tok, tmp_path / path, minutes=0)

    whole, curve = run("whole.safetensors")
    step, left = train._update, [12]

    def dies(*a):
        left[0] -= 1
        if left[0] < 0:
            raise KeyboardInterrupt
        return step(*a)

    monkeypatch.setattr(train, "_update", dies)
    with pytest.raises(KeyboardInterrupt):
        run("killed.safetensors")
    with safe_open(tmp_path / "killed.safetensors", "pt") as file:
        assert file.metadata()["step"] == "10"
    left[0] = 10  # The two steps after the checkpoint are done again
    again, curve2 = run("killed.safetensors")
    assert left[0] == 0 and curve2 == curve and [point["step"] for point in curve] == [5, 10, 15, 20]
    assert all(torch.equal(a, other) for a, other in zip(whole.parameters(), again.parameters()))


def states(model, ids):
    return model(input_ids=torch.tensor([ids]), attention_mask=torch.ones(1, len(ids))).last_hidden_state


def unlike(texts):  # Two tokenizers that split a text alike, with ids that differ, and its ids
    there, here = tasks.task_tokenizer(texts, "bart"), tasks.task_tokenizer(texts[::2], "bart")
    first, second = (
        tokenizer(texts[0], add_special_tokens=False)["input_ids"] for tokenizer in (there, here)
    )
    assert there.convert_ids_to_tokens(first) == here.convert_ids_to_tokens(second) and first != second
    return there, here, first, second


def test_a_warm_start_reads_as_the_model_it_came_from(texts):
    "Though its tokenizer gives other ids to the words"
    there, here, source, target = unlike(texts)
    bart, recipe = (
        train.build_model(bart_recipe := train.RECIPES["tiny-bart"], there).eval(),
        train.RECIPES["tiny-encoder"],
    )
    recipe = recipe._replace(
        config=recipe.config | dict(num_hidden_layers=bart_recipe.config["encoder_layers"], type_vocab_size=1)
    )
    roberta = train.build_model(recipe, here, seed=1).eval()

    def off():
        return (states(roberta.roberta, target) - states(bart.get_encoder(), source)).abs().max()

    with torch.no_grad():
        roberta.roberta.embeddings.token_type_embeddings.weight.zero_()
        before = off()
        train.warm_start(roberta, bart, train._matching_token_ids(there, here))
        assert off() < 1e-5 < 0.1 < before


def test_a_warm_start_of_the_same_class_is_a_copy(texts):
    recipe = bart()
    source, target = (train.build_model(recipe, tasks.task_tokenizer(texts, "bart"), seed) for seed in (0, 1))
    train.warm_start(target, source)
    assert all(torch.equal(first, second) for first, second in zip(source.parameters(), target.parameters()))


def test_a_training_that_starts_from_another_model_knows_its_words(texts, tmp_path, monkeypatch):
    "Without the loop, what is saved is the start; a missing word gets the weights at its id"
    there, here, source, target = unlike(texts)
    monkeypatch.setitem(train.RECIPES, "tiny-bart", bart(tokenizer=lambda *_: there))
    monkeypatch.setitem(train.RECIPES, "later", bart(tokenizer=lambda *_: here, start="tiny-bart"))
    monkeypatch.setattr(
        train,
        "_fit_recipe",
        lambda model, recipe, tok, checkpoint, seed: (
            checkpoint.parent.mkdir(parents=True) or checkpoint.touch() or []
        ),
    )
    new, old = (
        load_model(str(file), device="cpu").model.get_encoder()
        for file in (train.train_model("later", tmp_path), tmp_path / "tiny-bart")
    )
    with torch.no_grad():
        assert torch.equal(states(new, target), states(old, source))
    strange = [i for word, i in here.get_vocab().items() if word not in there.get_vocab()]
    assert strange and [train._matching_token_ids(there, here)[i] for i in strange] == strange


def test_pools_are_fresh_and_repeatable(tok):
    recipe = bart(steps=1000)
    first, again, second = (
        train.draw_pool(recipe, tok, 3, 1000),
        train.draw_pool(recipe, tok, 3, 1000),
        train.draw_pool(recipe, tok, 4, 1000),
    )
    seen = {tuple(e.target) for example in first for e in example}
    assert first == again and len(first) == train.POOL_STEPS and sum(map(len, first)) == 8 * train.POOL_STEPS
    assert len(seen & {tuple(e.target) for example in second for e in example}) < 0.05 * len(seen)


def test_an_unknown_name_lists_the_recipes(tmp_path):
    with pytest.raises(ValueError, match="no recipe for 'bart'.*tiny-bart"):
        train.train_model("bart", tmp_path)
