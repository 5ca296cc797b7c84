"""Filling a (dataset, generator) of a profile: what settings.ini says is made, once, whatever happens on
the way."""

import resource
import signal
import subprocess
import sys
import time
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from tests.helpers.profiles import INI, files
from tests.helpers.readings import encoder, framed
from tests.helpers.writers import SAMPLES, tiny
from uetrust.cli.cli import main
from uetrust.core import settings as s
from uetrust.core.store import Store
from uetrust.data.datasets import load_samples
from uetrust.generation.bank import bank_provenance, bank_row, fill_bank, read_bank
from uetrust.scoring import generators
from uetrust.scoring import pipeline as f
from uetrust.scoring.methods import score_generations
from uetrust.statistics.scores import load_scores
from uetrust.statistics.table import read_statistics

reg = load_scores()


@pytest.fixture(scope="module")
def project(tmp_path_factory):
    "A folder that looks like a checkout, with models of random weights"
    d = tmp_path_factory.mktemp("project")
    (d / "nbs").mkdir()
    (d / "settings.ini").write_text(INI)
    for name, m in (("bart", framed("bart")), ("llama", tiny("llama", chat=True)), ("encoder", encoder())):
        m.model.save_pretrained(d / "models" / name)
        m.tokenizer.save_pretrained(d / "models" / name)
    SAMPLES[:12].to_json(d / "toy.jsonl", orient="records", lines=True)
    SAMPLES[12:].assign(reference="w3 w4").to_json(d / "train.jsonl", orient="records", lines=True)
    return d


@pytest.fixture(scope="module")
def undisturbed(project):
    "All files of a run that nobody disturbed"
    subprocess.run(RUN, cwd=project, check=True)
    return files(project / "runs" / "small" / "banks" / "toy--writer")


ASK = ["fill", "toy--writer", "--profile", "small"]
RUN = [sys.executable, "-c", f"from uetrust.cli.cli import main; raise SystemExit(main({ASK}))"]


def test_a_generator_is_its_section_over_the_preset(here):
    generator = generators.generator_settings("writer")
    assert (
        generator.decoding.samples,
        generator.decoding.max_new_tokens,
        generator.decoding.temperature,
        generator.passes,
        generator.black_box,
    ) == (
        3,
        8,
        1,
        (
            "conditional",
            "vocabulary",
            "hidden",
            "sample_hidden",
            "processed",
            "unconditional",
            "attention",
            "attention_max",
            "focus",
            "beams",
        ),
        False,
    )
    assert generator.verbal_scale == ("1", "5") and generators.generator_settings("chatty").verbal_scale == ()
    assert (
        generators.generator_settings("box").black_box
        and generators.generator_settings("box").decoding.prompt == "w1 {source} w2"
    )


@pytest.mark.parametrize(
    "name,says",
    [
        ("wrong", "has no key 'sampels'. Did you mean 'samples'"),
        ("seen", "a server gives no token probabilities"),
        ("elicited", "no p_true and no elicit unless reader names its checkpoint; found .*w1"),
        ("passing", "no pass 'attntion'; there are conditional, "),
        ("renamed", "the pass 'own' is called 'conditional' now"),
        ("comparing", "nothing compares entailmnts; there are entailments, "),
        ("scaled", "verbal_scale is two numbers, the lowest and the highest, got '5'"),
        ("nobody", "no generator 'nobody'. No name is near. It has"),
    ],
)
def test_mistakes_in_settings_are_named(here, name, says):
    with pytest.raises((ValueError, LookupError), match=says):
        generators.generator_settings(name)


def test_a_profile_takes_few_of_a_dataset(here):
    path = generators.bank_plan("first", "bulletin--writer")
    assert (path.data, path.train) == ("bulletin:test:2", "bulletin:train:5") and len(
        load_samples(path.data)
    ) == 2
    with pytest.raises(
        LookupError,
        match=(
            "profile 'first' .* has no bank 'toy--writer'; it has \\['bulletin--writer', 'bulletin--again'\\]"
        ),
    ):
        generators.bank_plan("first", "toy--writer")


def test_banks_of_a_cross_evaluation_hold_greedy_texts_unless_they_are_sampled_anyway(here):
    writer, chatty = (
        generators.bank_plan("cross", f"toy--{name}").generator for name in ("writer", "chatty")
    )
    assert writer == generators.generator_settings("writer") and writer.decoding.samples == 3
    asked = generators.generator_settings("chatty")
    assert asked.decoding.samples == 2 and asked.passes and asked.elicit and asked.verbal_1s
    assert (chatty.decoding.samples, chatty.decoding.beams, chatty.passes, chatty.compare) == (0, 0, (), ())
    assert not (chatty.p_true or chatty.elicit or chatty.verbal_1s or chatty.verbal_2s)
    assert chatty.decoding.prompt == asked.decoding.prompt


def test_a_generator_like_another_has_its_settings_where_it_has_none(here):
    base, again, third = map(generators.generator_settings, ("writer", "again", "third"))
    assert (again.decoding.seed, again.items, again.passes, again.compare, again.p_true, again.verbal_2s) == (
        7,
        1,
        ("conditional",),
        ("sentences", "embeddings"),
        "",
        "",
    ), "its own win, empty ones too, also over names that [common] has"
    assert (
        replace(again.decoding, seed=42) == base.decoding
        and again.model == base.model
        and again.verbal_scale == base.verbal_scale
    )
    assert (
        replace(third, name="again", like="writer", decoding=again.decoding) == again
        and third.decoding.seed == 8
    )
    assert (base.like, base.items, base.compare) == (
        "",
        0,
        generators.COMPARISON_STEPS,
    ) and generators.variation_of("third") == (
        "writer",
        "seed",
    )


@pytest.mark.parametrize(
    "name,err,says",
    [
        (
            "lost",
            LookupError,
            r"\[generator.lost\] is like 'nobody': settings.ini has no generator 'nobody'. No name is near. "
            r"It has \['writer', ",
        ),
        (
            "round",
            ValueError,
            r"\[generator.round\]: `like` leads in a circle: round is like about is like round$",
        ),
    ],
)
def test_a_generator_like_nobody_or_like_itself_is_an_error(here, name, err, says):
    with pytest.raises(err, match=says):
        generators.generator_settings(name)


def test_a_study_changes_one_thing_at_a_time(here):
    text = (here / "settings.ini").read_text()
    (here / "settings.ini").write_text(
        text.replace("seed = 8", "seed = 8\np_true = other {source} {summary}")
    )
    s._read.cache_clear()
    try:
        with pytest.raises(
            ValueError, match=r"should differ from 'writer' in one of .* it differs in \['seed', 'question'\]"
        ):
            generators.variation_of("third")
    finally:
        (here / "settings.ini").write_text(text)
    s._read.cache_clear()


def test_a_small_bank_holds_what_was_asked_for(here):
    assert generators.bank_plan("first", "bulletin--again").data == "bulletin:test:1"
    folder = f.run_pipeline("first", "bulletin--again", progress=False)
    assert (
        sorted(path.name for path in folder.iterdir()) == ["conditional", "embeddings", "sentences", "texts"]
        and read_bank(folder / "texts")["sample"].nunique() == 1
    )
    assert Store(folder / "texts", "bank").manifest()["about"]["settings"]["seed"] == 7


def test_white_box_holds_texts_readings_training_states_and_comparisons(here):
    folder = f.run_pipeline("small", "toy--writer", progress=False)
    assert sorted(path.name for path in folder.iterdir()) == [
        "alternatives",
        "asked",
        "attention",
        "attention_max",
        "background",
        "background-hidden",
        "beams",
        "conditional",
        "embeddings",
        "entailments",
        "focus",
        "hidden",
        "processed",
        "relevance",
        "sample_hidden",
        "sentences",
        "texts",
        "train",
        "train-hidden",
        "unconditional",
        "verbal_2s",
        "vocabulary",
    ]
    texts = read_bank(folder / "texts")
    assert (
        len(texts) == 12 * 4
        and len(read_statistics(folder / "conditional")) == 12 * 4
        and len(read_statistics(folder / "unconditional")) == 12
    )
    assert (
        len(read_statistics(folder / "train-hidden")) == 8
        and len(read_statistics(folder / "entailments")) == len(read_statistics(folder / "embeddings")) == 12
    )
    rel, own = (
        read_statistics(folder / path).set_index(["sample", "kind", "k"])
        for path in ("relevance", "conditional")
    )
    assert len(rel) == 12 * 4 and all(len(r) == len(own.at[i, "ids"]) for i, r in rel["relevance"].items())
    raw, done = (
        read_statistics(folder / path).query("kind=='greedy'").set_index("sample")["logp"]
        for path in ("conditional", "processed")
    )
    assert any(len(a) == 8 and b[-1] == 0 > a[-1] for a, b in zip(raw, done)), (
        "this checkpoint forces an end: raw numbers know nothing of it"
    )


def test_black_box_holds_texts_and_comparisons_and_is_never_asked_twice(here, monkeypatch):
    folder = f.run_pipeline("small", "toy--box", progress=False)
    assert sorted(path.name for path in folder.iterdir() if path.is_dir()) == [
        "embeddings",
        "entailments",
        "sentences",
        "texts",
        "verbal_1s",
        "verbal_2s",
    ]
    before = files(folder)
    assert Store(folder / "texts", "bank").manifest()["about"]["generator"] == "box" and "http" not in str(
        before
    )
    for d in ("texts", "verbal_1s", "verbal_2s"):
        for n in (folder / d).glob("*.parquet"):
            n.unlink()
    from uetrust.generation import endpoint

    monkeypatch.setattr(endpoint, "send_once", lambda e, r: pytest.fail("a kept reply was asked for again"))
    f.run_pipeline("small", "toy--box", progress=False)
    assert files(folder) == before


def test_a_server_and_its_own_checkpoint_say_the_same(here):
    box, chatty = (f.run_pipeline("small", f"toy--{n}", progress=False) for n in ("box", "chatty"))
    assert sorted(path.name for path in chatty.iterdir()) == [
        "alternatives",
        "conditional",
        "elicited",
        "embeddings",
        "entailments",
        "relevance",
        "sentences",
        "texts",
        "verbal_1s",
        "verbal_2s",
    ]
    for n in ("verbal_1s", "verbal_2s"):
        a, b = (read_statistics(d / n) for d in (box, chatty))
        assert (
            a["reply"].tolist() == b["reply"].tolist()
            and len(set(a["reply"])) > 6
            and (a["stated"] == a["reply"]).all()
        )
        longest = Store(box / n, "readings").manifest()["about"]["max_new_tokens"]
        assert longest == (8 + 32 if n == "verbal_1s" else 32), "a summary and how sure it is, or a number"
    assert a["reply"].tolist() != read_statistics(box / "verbal_1s")["reply"].tolist()
    own = read_statistics(chatty / "conditional").query("kind=='greedy'")
    assert [len(w) for w in read_statistics(chatty / "elicited")["elicited_attention"]] == [
        len(x) for x in own["ids"]
    ]
    table = score_generations(chatty, ["csl"], SAMPLES, reg, progress=False).table
    nothing = [bool(x.all()) for x in own["special"]]  # A text of special tokens only: nothing to look at
    assert (
        table["value"].isna().tolist() == nothing and (table["value"].dropna() > 0).all() and sum(nothing) < 6
    )


def test_keywords_ask_for_a_tagger_and_focus_for_documents(here):
    text = (here / "settings.ini").read_text()
    for old, new, err, says in (
        ("tagger =", "tagger = no-such", LookupError, "pipeline 'no-such': pip install spacy"),
        ("train = train.jsonl", "train =", ValueError, "names no training texts"),
    ):
        (here / "settings.ini").write_text(text.replace(old, new, 1))
        s._read.cache_clear()
        try:
            with pytest.raises(err, match=says):
                f.run_pipeline("small", "toy--writer", progress=False)
        finally:
            (here / "settings.ini").write_text(text)
    s._read.cache_clear()


def test_a_second_run_writes_nothing_and_starting_anew_gives_the_same_bytes(here, undisturbed):
    folder = f.run_pipeline("small", "toy--writer", progress=False)
    times = {path: path.stat().st_mtime_ns for path in folder.rglob("*.parquet")}
    assert main(ASK) == 0 and {path: path.stat().st_mtime_ns for path in folder.rglob("*.parquet")} == times
    assert main([*ASK, "--no-resume"]) == 0 and files(folder) == undisturbed
    assert {path: path.stat().st_mtime_ns for path in folder.rglob("*.parquet")} != times


def test_killed_three_times_it_ends_as_if_undisturbed(here, undisturbed):
    folder = here / "runs" / "small" / "banks" / "toy--writer"
    f.clear_bank(folder)

    def shards():
        return len([path for path in folder.rglob("*.parquet") if not path.name.startswith(".")])

    for n in (1, 3, 6):
        path = subprocess.Popen(RUN, cwd=here)
        while shards() < n and path.poll() is None:
            time.sleep(0.002)
        path.send_signal(signal.SIGKILL)
        assert path.wait() == -9, "it was to be killed before it ended"
    assert shards() < 22
    assert main(ASK) == 0 and files(folder) == undisturbed


def test_a_full_disk_is_named_and_the_next_run_goes_on(here, undisturbed):
    folder = here / "runs" / "small" / "banks" / "toy--writer"
    f.clear_bank(folder)
    room = int(
        np.median([len(b) for n, b in undisturbed.items() if n.endswith(".parquet")])
    )  # Half of the shards are longer
    got = subprocess.run(
        RUN,
        cwd=here,
        capture_output=True,
        text=True,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (room, room)),
    )
    assert (
        got.returncode == 2
        and ".parquet could not be written" in got.stderr
        and "would be larger than allowed" in got.stderr
        and "ulimit -f" in got.stderr
        and "Traceback" not in got.stderr
    )
    left = [
        path
        for path in folder.rglob("*")
        if path.is_file() and path.stat().st_size and ".sqlite" not in path.name
    ]
    assert left and all(path.read_bytes() == undisturbed[str(path.relative_to(folder))] for path in left)
    assert main(ASK) == 0 and files(folder) == undisturbed


def test_another_setting_is_an_error_that_says_what_to_do(here, capsys):
    f.run_pipeline("small", "toy--writer", progress=False)
    text = (here / "settings.ini").read_text()
    (here / "settings.ini").write_text(text.replace("samples = 3", "samples = 4"))
    s._read.cache_clear()
    try:
        assert main(ASK) == 2
        assert (
            "settings.samples: found 3, expected 4" in (said := capsys.readouterr().err)
            and "--no-resume" in said
        )
    finally:
        (here / "settings.ini").write_text(text)


def test_reading_by_command_gives_what_filling_gives(here, tmp_path, capsys, undisturbed):
    folder = f.run_pipeline("small", "toy--writer", progress=False)
    assert (
        main(
            [
                "read",
                str(tmp_path / "conditional"),
                str(folder / "texts"),
                "--read",
                "conditional",
                "--model",
                "models/bart",
                "--data",
                "toy.jsonl",
            ]
        )
        == 0
    )
    assert "tokens read by models/bart" in capsys.readouterr().out
    a, b = read_statistics(tmp_path / "conditional"), read_statistics(folder / "conditional")
    pd.testing.assert_frame_equal(a[["sample", "kind", "k"]], b[["sample", "kind", "k"]])
    assert all((x == y).all() for c in ("ids", "logp", "entropy") for x, y in zip(a[c], b[c]))


def test_the_survey_of_the_models_asks_as_settings_ini_does():
    from uetrust.dev.training.behaviour import SUMMARY_DECODING

    for name in ("tiny-bart", "tiny-t5", "tiny-llama", "tiny-llama-api"):
        generator = generators.generator_settings(name)
        assert replace(generator.decoding, prompt=SUMMARY_DECODING.prompt) == SUMMARY_DECODING and (
            generator.decoding.prompt == SUMMARY_DECODING.prompt or "llama" not in name
        )


def test_every_profile_in_the_repository_can_be_planned():
    for name in ("demo", "smoke", "aeslc-tiny", "paper"):
        for bank in (s.profile(name)["banks"] + " " + s.profile(name)["perturbed_banks"]).split():
            path = generators.bank_plan(name, bank)
            assert path.data and set(path.generator.passes) <= set(generators.GENERATOR_PASSES), (name, bank)


def test_one_missing_shard_is_unfinished(tmp_path):
    about = bank_provenance("toy", "echo", "echo-model", "r1", dict(seed=1), dict(greedy=1))

    def made(part):
        return [bank_row(name, "greedy", 0, "text", [1], 0, "stop") for name in part["id"]]

    samples = pd.DataFrame(dict(id=list("abc"), source="A source.", split="test"))
    texts = fill_bank(tmp_path / "texts", samples, about, made, 1, progress=False)
    assert f.unfinished_shards(tmp_path) == []
    next(texts.glob("*.parquet")).unlink()
    assert f.unfinished_shards(tmp_path) == ["texts: 1 of 3 shards"]


@pytest.mark.parametrize("worker, right", [((0, 1), True), ((1, 3), True), ((3, 3), False), ((-1, 3), False)])
def test_a_worker_has_a_number_below_how_many_there_are(worker, right):
    if right:
        assert f.check_worker(worker) == worker
    else:
        with pytest.raises(ValueError, match="i from 0 to n - 1"):
            f.check_worker(worker)
