"""Generator settings: what a section of settings.ini may say, what it means when it says nothing, and the
plan of a bank that follows."""

from dataclasses import FrozenInstanceError

import pytest

from uetrust.core import settings as project
from uetrust.scoring import generators
from uetrust.scoring.generators import generator_settings
from uetrust.statistics.judges import JudgeServer

LIMITS = dict(  # Key -> the values at the ends of its range, and those just beyond
    price_in=("0", None, "-0.01", None),
    price_out=("0", None, "-0.01", None),
    budget=("0", "inf", "-0.01", None),
    per_call=("0", None, "-1", None),
    logprobs=("-1", "20", "-2", "21"),
    concurrency=("1", "1000", "0", "1001"),
    timeout=("1", None, "0.5", None),
    batch=("1", "1000000", "0", "1000001"),
    shard=("1", None, "0", None),
    items=("0", None, "-1", None),
    beam_members=("1", "1000", "0", "1001"),
    max_prompt=("1", None, "0", None),
    min_length=("0", None, "-1", None),
)
PROFILE = """
[profile.few]
banks = toy--mine bulletin--mine
items = 3
train_items = 2
[dataset.toy]
data = toy.csv
[dataset.bulletin]
data = bulletin:test:9
train = bulletin:train:1
"""


@pytest.fixture
def written(tmp_path, monkeypatch):
    "`written(text)`: a project whose settings.ini is that text"
    (tmp_path / "nbs").mkdir()
    (tmp_path / "toy.csv").touch()
    monkeypatch.chdir(tmp_path)

    def forget():
        for cached in (project.root, project._read):
            cached.cache_clear()

    def write(text):
        (tmp_path / "settings.ini").write_text(text)
        forget()
        return tmp_path

    yield write
    monkeypatch.undo()
    forget()


@pytest.fixture
def mine(written):
    "`mine(line, ...)`: the generator of a section with these lines"

    def parse(*lines):
        written("\n".join(["[generator.mine]", *lines]))
        return generator_settings("mine")

    return parse


def test_a_section_that_only_names_a_model_costs_nothing_and_asks_nothing(mine):
    found = mine("model = m")
    assert (found.price_in, found.price_out, found.budget) == (0, 0, float("inf"))
    assert (found.concurrency, found.timeout, found.per_call, found.logprobs) == (8, 60, 0, -1)
    assert (found.batch, found.shard, found.items, found.beam_members) == (8, 64, 0, 10)
    assert found.request_fields == {} and found.passes == () and found.read_by == "m"


@pytest.mark.parametrize("key", LIMITS)
def test_a_number_may_lie_at_the_ends_of_its_range_and_not_beyond(mine, key):
    lowest, highest, below, above = LIMITS[key]
    for value in filter(None, (lowest, highest)):
        found = mine("model = m", f"{key} = {value}")
        assert getattr(found, key, None) or getattr(found.decoding, key, None) or float(value) == 0
    for value in filter(None, (below, above)):
        with pytest.raises(
            ValueError, match=rf"\[generator.mine\] {key} = {value}: expected (int|float), and"
        ):
            mine("model = m", f"{key} = {value}")


def test_settings_are_values_that_nobody_changes(written):
    written(PROFILE + "[generator.mine]\nmodel = m")
    plans = [generators.bank_plan("few", "toy--mine") for _ in range(2)]
    assert len(set(plans)) == 1 and len({plan.generator for plan in plans}) == 1
    for value in (plans[0], plans[0].generator):
        with pytest.raises(FrozenInstanceError):
            value.name = "other"


@pytest.mark.parametrize(
    "lines, says",
    [
        ("batch = 4", r"\[generator.mine\] names no model"),
        ("model = m;reader = m", "a checkpoint reads its own, so leave it out, or name the endpoint"),
        ("serve = m;reader = m;elicit = {source} {summary} ?", "a server gives none: leave elicit empty"),
        ("serve = m;p_true = {source} {summary}", r"unless reader names its checkpoint; found \['{source} "),
        ("model = m;passes = first second", "passes: there is no pass 'first'; there are conditional"),
        ("model = m;likelihood = BERT", r"likelihood is one of \['BART', .*, got 'BERT'"),
        ("model = m;extra = [1]", r"extra is a JSON object of .*; got '\[1\]'"),
        ("model = m;extra = {", "extra is a JSON object of .*; got '{'"),
        ("model = m;verbal_scale = 5", "two numbers, the lowest and the highest, got '5'"),
        ("model = m;verbal_scale = 1 3 5", "two numbers, the lowest and the highest, got '1 3 5'"),
        ("model = m;preset = he2025", r"\[generator.mine\]: there is no decoding preset 'he2025'"),
        ("model = m;prompt = Sum up.", r"mine\]: prompt needs \{source\} exactly once, got 'Sum up\.'"),
        ("model = m;prompt = Sum up {text}", r"mine\]: prompt has \{text\}, but only \{source\} is"),
        ("model = m;document = {id} {source}", r"mine\]: document has \{id\}, but only \{source\} is"),
        (
            "stored = xsum",
            r"\[generator.mine\]: no texts about 'xsum' are stored; stored is one of \['tofueval'\]",
        ),
        ("stored = tofueval;model = m;passes = hidden", "stored texts are copied.*leave out model, passes"),
        ("model = m;samples = -1", "samples = -1: expected int, and .* greater than or equal to 0"),
    ],
)
def test_what_does_not_go_together_is_named(mine, lines, says):
    with pytest.raises((ValueError, LookupError), match=says):
        mine(*lines.split(";"))


def test_what_goes_together_is_taken(mine):
    served = mine(
        "endpoint = http://127.0.0.1/v1", "model = m", "reader = r", "passes = hidden", "p_true = {summary}?"
    )
    assert served.black_box and served.read_by == "r" and served.passes == ("hidden",)
    assert mine("endpoint = http://127.0.0.1/v1", "model = m").read_by == "", "nobody reads for a server"
    assert mine("model = m", "likelihood = BART", "verbal_scale = 1 5").verbal_scale == ("1", "5")
    assert mine("model = m", 'extra = {"temperature": null}').request_fields == {"temperature": None}
    stored = mine("stored = tofueval")
    assert not stored.black_box and stored.read_by == "" and stored.compare
    preset = mine("model = m", "preset = he2024", "seed = 7").decoding
    assert (preset.max_new_tokens, preset.temperature, preset.seed) == (100, None, 7)
    assert mine("model = m", "preset = he2024").density == "he2024"
    assert mine("model = m", "preset = he2024", "density = references").density == "references"
    assert mine("model = m").density == "references"


def test_a_model_of_the_self_bias_study_needs_no_section(written):
    written("")
    small, gpt2 = generator_settings("T5-Small"), generator_settings("GPT2")
    assert (small.model, small.decoding.document, small.decoding.samples) == (
        "t5-small",
        "Summarize: {source}",
        0,
    )
    assert gpt2.decoding.prompt.startswith("{source}") and len(gpt2.decoding.prompt) > len("{source}")
    with pytest.raises(ValueError, match="GPT3-Curie is retired, .*: ") as error:
        generator_settings("GPT3-Curie")
    assert "'T5-Small'" in str(error.value) and "Cohere" not in str(error.value), "what can be named instead"


@pytest.mark.parametrize(
    "wrong",
    ["[profile.p]\nitems = 0", "[dataset.d]\ndata =", "[generator.g]\nmodel = m\nbatch = 0"],
)
def test_a_mistake_in_any_section_is_found(written, wrong):
    written("[dataset.good]\ndata = bulletin:test:9\n[generator.good]\nmodel = m\n")
    generators.check_settings()
    written(f"[dataset.good]\ndata = bulletin:test:9\n[generator.good]\nmodel = m\n{wrong}")
    with pytest.raises(ValueError, match=rf"settings.ini \[{wrong.split(']')[0][1:]}\]"):
        generators.check_settings()


def test_a_repeated_bank_differs_in_one_thing(written):
    base = "[generator.a]\nmodel = m\nseed = 1\np_true = {source} {summary}\n[generator.b]\nlike = a\n"
    for line, what in (
        ("seed = 2", "seed"),
        ("document = Sum up {source}", "prompt"),
        ("elicit = ?", "question"),
    ):
        written(base + line)
        assert generators.variation_of("b") == ("a", what)
    written(base)
    with pytest.raises(ValueError, match=r"\[generator.b\] should differ from 'a' .* it differs in \[\]"):
        generators.variation_of("b")


def test_greedy_texts_alone_are_neither_drawn_nor_searched(mine):
    found = generators.greedy_only(
        mine("model = m", "beams = 3", "samples = 4", "passes = hidden", "seed = 5")
    )
    assert found.decoding.texts == dict(greedy=1, sample=0, beam=0) and found.decoding.seed == 5


def test_a_bank_that_is_only_cross_evaluated_holds_greedy_texts(written):
    written(
        "[profile.p]\nbanks = toy--a\ncross_evaluation = toy--a toy--b\n[dataset.toy]\ndata = toy.csv\n"
        "[generator.a]\nmodel = m\nsamples = 3\n[generator.b]\nlike = a"
    )
    drawn = [generators.bank_plan("p", f"toy--{name}").generator.decoding.samples for name in "ab"]
    assert drawn == [3, 0], "the first is a bank of the profile, too"
    with pytest.raises(
        LookupError, match=r"profile 'p' .* has no bank 'toy--c'; it has \['toy--a', 'toy--a', "
    ):
        generators.bank_plan("p", "toy--c")


def test_without_drawn_texts_only_what_reads_them_is_left_out(mine):
    lines = "model = m", "passes = hidden sample_hidden", "compare = embeddings"
    kept, lost = generators.steps_without_samples(mine(*lines, "samples = 0"))
    assert (lost, kept.passes, kept.compare) == (["sample_hidden"], ("hidden",), ("embeddings",))
    drawn = mine(*lines, "samples = 1")
    assert generators.steps_without_samples(drawn) == (drawn, [])


def test_a_plan_takes_the_smallest_of_what_profile_dataset_and_generator_say(written):
    folder = written(PROFILE + "[generator.mine]\nmodel = m\nitems = 5")
    toy, bulletin = (generators.bank_plan("few", f"{name}--mine") for name in ("toy", "bulletin"))
    assert (toy.data, toy.train, toy.background) == (f"{folder}/toy.csv:3", "", "")
    assert (bulletin.data, bulletin.train) == ("bulletin:test:3", "bulletin:train:1")
    assert bulletin.folder == folder / "runs" / "few" / "banks" / "bulletin--mine"
    written(PROFILE + "[generator.mine]\nmodel = m\nitems = 1")
    assert generators.bank_plan("few", "bulletin--mine").data == "bulletin:test:1"
    written(PROFILE.replace("items = 3", "") + "[generator.mine]\nmodel = m")
    assert generators.bank_plan("few", "bulletin--mine").data == "bulletin:test:9"


def test_a_dataset_that_is_not_there_is_named_by_its_section(written):
    written(PROFILE.replace("toy.csv", "tyo.csv") + "[generator.mine]\nmodel = m")
    with pytest.raises(ValueError, match=r"\[dataset.toy\] data = tyo.csv: there is no file"):
        generators.bank_plan("few", "toy--mine")


def test_a_judge_may_be_a_server_and_nothing_else(written):
    written("[generator.box]\nserve = m\n[generator.local]\nmodel = m")
    models = generators.with_judge_server(
        dict(judge="server:box", echo="server:box", nli="m"), "replies.sqlite"
    )
    assert models["nli"] == "m" and all(isinstance(models[name], JudgeServer) for name in ("judge", "echo"))
    assert generators.with_judge_server(dict(judge="m"), "replies.sqlite") == dict(judge="m")
    for group, name in (("nli", "box"), ("judge", "local")):
        with pytest.raises(ValueError, match=f"metric_models {group}=server:{name}: only a judge can be"):
            generators.with_judge_server({group: f"server:{name}"}, "replies.sqlite")
