"""Generation on the command line: a bank is filled once, a dry run asks nobody."""

import json

import pytest

from tests.helpers.paths import ROOT
from uetrust.cli.cli import main


# Generation
def bart():
    from uetrust.core.settings import oracles

    if oracles() is None:
        pytest.skip("UETRUST_ORACLES is not at hand")
    return oracles() / "seed_systems" / "models" / "tiny_bart"


def test_generate_fills_a_bank_once_and_refuses_other_settings(tmp_path, capsys):
    from uetrust.core.store import Store

    ask = [
        "generate",
        str(tmp_path / "bank"),
        "--model",
        str(bart()),
        "--data",
        "bulletin:test:3",
        "--max-new-tokens",
        "8",
        "--samples",
    ]
    assert main([*ask, "2"]) == 0 and "9 texts of 3 sources" in capsys.readouterr().out
    before = {path.name: path.stat().st_mtime_ns for path in (tmp_path / "bank").glob("*.parquet")}
    assert main([*ask, "2"]) == 0
    assert {path.name: path.stat().st_mtime_ns for path in (tmp_path / "bank").glob("*.parquet")} == before
    assert main([*ask, "4"]) == 2 and "samples: found 2, expected 4" in capsys.readouterr().err
    assert Store(tmp_path / "bank", "bank").manifest()["about"]["dataset"] == "bulletin"


@pytest.fixture
def server():
    "A server that answers with `text 0`, `text 1`, ...; its `calls` are the requests it was sent"
    import http.server
    import threading

    class Handler(http.server.BaseHTTPRequestHandler):
        def log_message(self, *args):
            pass

        def do_POST(self):
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            self.server.calls.append(body)
            choices = [
                dict(index=i, message=dict(content=f"text {i}"), finish_reason="stop")
                for i in range(body.get("n") or 1)
            ]
            reply = dict(choices=choices, usage=dict(prompt_tokens=5, completion_tokens=2))
            content = json.dumps(reply).encode()
            self.send_response(200)
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler) as http_server:
        http_server.calls = []
        threading.Thread(target=http_server.serve_forever, daemon=True).start()
        yield http_server
        http_server.shutdown()


def test_generate_asks_a_server_and_a_dry_run_asks_nobody(tmp_path, capsys, server):
    options = "--model toy --data bulletin:test:2 --samples 3 --price-in 1 --price-out 1".split()
    endpoint = f"http://127.0.0.1:{server.server_port}/v1"
    ask = ["generate", str(tmp_path / "bank"), *options, "--endpoint", endpoint]
    assert main([*ask, "--dry-run"]) == 0
    assert not server.calls and not list(tmp_path.iterdir())
    assert "requests 4; cached 0" in capsys.readouterr().out
    assert main(ask) == 0
    assert "8 texts of 2 sources by toy" in capsys.readouterr().out
    sent = len(server.calls)
    assert main(ask) == 0
    assert len(server.calls) == sent == 4
    assert main([*ask, "--dry-run"]) == 0
    assert "requests 4; cached 4" in capsys.readouterr().out


@pytest.mark.parametrize("typed, asked", [(["--logprobs", "3"], 3), (["--logprobs"], 5), ([], None)])
def test_a_server_is_asked_for_log_probabilities_where_they_are_wanted(tmp_path, server, typed, asked):
    ask = [
        "generate",
        str(tmp_path / "bank"),
        "--model",
        "toy",
        "--data",
        "bulletin:test:1",
        "--samples",
        "0",
    ]
    assert main([*ask, "--endpoint", f"http://127.0.0.1:{server.server_port}/v1", *typed]) == 0
    (sent,) = server.calls
    assert (sent.get("logprobs") or None, sent.get("top_logprobs")) == (asked and True, asked)


def test_log_probabilities_of_a_checkpoint_are_not_asked_of_a_server(tmp_path, capsys):
    ask = ["generate", str(tmp_path / "bank"), "--model", "x", "--data", "bulletin:test:1", "--logprobs"]
    assert main(ask) == 2 and not (tmp_path / "bank").exists()
    assert "--logprobs asks a server (--endpoint)" in capsys.readouterr().err


@pytest.mark.parametrize(
    "what,says",
    [
        ("bulletin:test", "NAME:SPLIT:NUMBER"),
        ("bulletin:tset:3", "tset"),
        ("nowhere.jsonl", "there is no file"),
    ],
)
def test_sources_that_cannot_be_are_explained(tmp_path, capsys, what, says):
    assert main(["generate", str(tmp_path / "bank"), "--model", "x", "--data", what, "--dry-run"]) == 2
    assert says in capsys.readouterr().err


# Prompts
LLAMA = ["--model", str(ROOT / "data" / "models" / "tiny-llama"), "--data", "bulletin:test:2"]
PROMPT = "Summarize the bulletin: {source}"


def recorded(folder):
    from uetrust.core.store import Store

    return Store(folder, "bank").manifest()["about"]


def generate(folder, *options, model=LLAMA):
    return main(["generate", str(folder), *model, "--samples", "1", "--max-new-tokens", "4", *options])


@pytest.fixture(scope="module")
def prompted(tmp_path_factory):
    "A bank of two sources with a prompt of the command line"
    folder = tmp_path_factory.mktemp("prompted") / "bank"
    assert generate(folder, "--prompt", PROMPT, "--temperature", "0.7", "--top-p", "0.9") == 0
    return folder


def test_a_bank_keeps_the_prompt_and_how_its_texts_were_drawn(prompted):
    kept = recorded(prompted)["settings"]
    assert (kept["prompt"], kept["temperature"], kept["top_p"]) == (PROMPT, 0.7, 0.9)


def test_a_prompt_of_the_command_line_writes_the_texts_that_settings_ini_asks_for(prompted):
    from dataclasses import replace

    from uetrust.data.datasets import load_samples
    from uetrust.generation.bank import read_bank
    from uetrust.generation.local import fill_local_bank
    from uetrust.models.load import load_model
    from uetrust.scoring.generators import generator_settings

    said = generator_settings("tiny-llama").decoding
    assert (said.prompt, said.top_p) == (PROMPT, 0.9)
    settings = replace(said, samples=1, max_new_tokens=4, temperature=0.7)
    rows, model = load_samples(LLAMA[3]), load_model(LLAMA[1])
    fill_local_bank(prompted.parent / "said", "bulletin", "tiny-llama", rows, model, settings)
    assert list(read_bank(prompted.parent / "said")["text"]) == list(read_bank(prompted)["text"])


def test_a_prompt_holds_for_a_model_with_an_encoder(tmp_path):
    model = ["--model", str(ROOT / "data" / "models" / "tiny-t5"), "--data", "bulletin:test:1"]
    assert generate(tmp_path / "bank", "--prompt", "summarize: {source}", model=model) == 0
    assert recorded(tmp_path / "bank")["settings"]["prompt"] == "summarize: {source}"


def test_read_takes_the_prompt_of_the_bank_and_refuses_another(prompted, capsys):
    from uetrust.core.store import Store

    read = ["read", str(prompted), *LLAMA]
    assert main([*read, "--prompt", "Summarize: {source}"]) == 2
    assert not (prompted / "conditional").exists()
    error = capsys.readouterr().err
    assert f"--prompt is 'Summarize: {{source}}', but the texts of {prompted} were written after" in error
    assert repr(PROMPT) in error and error.count("\n") == 1
    assert main(read) == 0
    assert Store(prompted / "conditional", "readings").manifest()["about"]["prompt"] == PROMPT
    assert main([*read, "--prompt", PROMPT]) == 0


@pytest.mark.parametrize(
    "option, other, difference",
    [
        (
            "--prompt",
            "Summarize: {source}",
            f"settings.prompt: found {PROMPT!r}, expected 'Summarize: {{source}}'",
        ),
        ("--temperature", "0.8", "settings.temperature: found 0.7, expected 0.8"),
        ("--top-p", "1", "settings.top_p: found 0.9, expected 1.0"),
    ],
)
def test_a_bank_that_was_begun_with_other_options_is_refused(prompted, capsys, option, other, difference):
    options = {"--prompt": PROMPT, "--temperature": "0.7", "--top-p": "0.9"} | {option: other}
    before = recorded(prompted)
    assert generate(prompted, *(word for pair in options.items() for word in pair)) == 2
    assert f"the bank there was made otherwise: {difference}." in capsys.readouterr().err
    assert recorded(prompted) == before


@pytest.mark.parametrize(
    "option, typed, says",
    [
        ("--prompt", "Summarize.", "--prompt needs {source} exactly once, got 'Summarize.'"),
        ("--prompt", "", "--prompt needs {source} exactly once, got ''"),
        ("--prompt", "{source} {source}", "--prompt needs {source} exactly once"),
        ("--prompt", "Summarize: {text}", "--prompt has {text}, but only {source} is filled in"),
        ("--prompt", "For {reader}: {source}", "--prompt has {reader}, but only {source} is filled in"),
        ("--temperature", "0", "--temperature: needs a number above 0, such as 0.7, got '0'"),
        ("--temperature", "-1", "--temperature: needs a number above 0, such as 0.7, got '-1'"),
        ("--temperature", "inf", "--temperature: needs a number above 0, such as 0.7, got 'inf'"),
        ("--temperature", "nan", "--temperature: needs a number above 0, such as 0.7, got 'nan'"),
        ("--top-p", "0", "--top-p: needs a number above 0 and at most 1, got '0'"),
        ("--top-p", "1.5", "--top-p: needs a number above 0 and at most 1, got '1.5'"),
    ],
)
def test_what_cannot_be_asked_is_one_line(tmp_path, capsys, option, typed, says):
    assert generate(tmp_path / "bank", option, typed) == 2
    error = capsys.readouterr().err
    assert says in error and error.count("\n") == 1 and not (tmp_path / "bank").exists()


def test_braces_that_are_no_field_are_text(tmp_path, capsys):
    prompt = 'Answer as {"summary": ...}, and the number in \\boxed{number}: {source}'
    assert generate(tmp_path / "bank", "--prompt", prompt, "--dry-run") == 0


def test_a_server_is_sent_the_prompt_and_how_to_draw(tmp_path, server):
    model = ["--model", "toy", "--data", "bulletin:test:1"]
    options = ["--endpoint", f"http://127.0.0.1:{server.server_port}/v1", "--temperature", "0.7"]
    options += ["--prompt", "In one word: {source}", "--top-p", "0.9"]
    assert generate(tmp_path / "bank", *options, model=model) == 0
    greedy, drawn = sorted(server.calls, key=lambda call: call["temperature"])
    (message,) = drawn["messages"]
    assert message["role"] == "user" and message["content"].startswith("In one word: On 8 August")
    assert (greedy["temperature"], drawn["temperature"], drawn["top_p"]) == (0, 0.7, 0.9)


# System messages
SYSTEM = "Answer like a town clerk."


@pytest.fixture(scope="module")
def with_system(tmp_path_factory):
    "A bank of two sources after a system message"
    folder = tmp_path_factory.mktemp("system") / "bank"
    assert generate(folder, "--prompt", PROMPT, "--system", SYSTEM) == 0
    return folder


def test_a_system_message_stands_before_the_prompt(with_system):
    from uetrust.data.datasets import load_samples
    from uetrust.generation.decoding import settings_from_record
    from uetrust.generation.local import render_prompts
    from uetrust.models.load import load_model

    settings = settings_from_record(recorded(with_system)["settings"])
    assert settings.system == SYSTEM
    model, (source, _) = load_model(LLAMA[1]), load_samples(LLAMA[3])["source"]
    ((ids, _),) = render_prompts(model, [source], settings)
    whole = f"<s>[INST] {SYSTEM} [/INST][INST] Summarize the bulletin: {source} [/INST]"
    assert ids == model.tokenizer(whole, add_special_tokens=False).input_ids


def test_a_bank_without_a_system_message_is_recorded_as_before(prompted):
    assert "system" not in recorded(prompted)["settings"]


def test_read_takes_the_system_message_of_the_bank_and_refuses_another(with_system, prompted, capsys):
    from uetrust.core.store import Store

    read = ["read", str(with_system), *LLAMA]
    assert main([*read, "--system", "Be brief."]) == 2
    error = capsys.readouterr().err
    assert f"--system is 'Be brief.', but the texts of {with_system} were written after {SYSTEM!r}" in error
    assert error.count("\n") == 1 and not (with_system / "conditional").exists()
    assert main(read) == 0
    about = Store(with_system / "conditional", "readings").manifest()["about"]
    assert (about["prompt"], about["system"]) == (PROMPT, SYSTEM)
    assert main([*read, "--system", SYSTEM]) == 0
    assert main(["read", str(prompted), *LLAMA, "--system", SYSTEM]) == 2
    assert "were written after ''. Leave --system out" in capsys.readouterr().err


def test_what_a_text_is_read_after_has_the_system_message(with_system, tmp_path):
    from dataclasses import replace

    from uetrust.data.datasets import load_samples
    from uetrust.generation.decoding import settings_from_record
    from uetrust.models.load import load_model
    from uetrust.statistics.generator import get_pass
    from uetrust.statistics.passes import compute_likelihoods
    from uetrust.statistics.table import read_statistics

    settings = settings_from_record(recorded(with_system)["settings"])
    given = with_system, load_samples(LLAMA[3]), load_model(LLAMA[1]), get_pass("conditional")
    own, without = (
        read_statistics(compute_likelihoods(tmp_path / name, *given, how))["logp"]
        for name, how in dict(own=settings, without=replace(settings, system="")).items()
    )
    assert [list(a) == list(b) for a, b in zip(own, without)] == [False] * 4


def test_a_bank_after_another_system_message_is_another_bank(with_system, capsys):
    assert generate(with_system, "--prompt", PROMPT, "--system", "Be brief.") == 2
    error = capsys.readouterr().err
    assert f"settings.system: found {SYSTEM!r}, expected 'Be brief.'" in error
    assert generate(with_system, "--prompt", PROMPT) == 2


@pytest.mark.parametrize("name", ["tiny-t5", "tiny-bart"])
def test_a_model_without_chat_template_takes_no_system_message(tmp_path, capsys, name):
    model = ["--model", str(ROOT / "data" / "models" / name), "--data", "bulletin:test:1"]
    assert generate(tmp_path / "bank", "--system", SYSTEM, model=model) == 2
    error = capsys.readouterr().err
    assert f"{name} has no chat template, so it takes no system message. Leave" in error
    assert error.count("\n") == 1 and not (tmp_path / "bank" / "bank.json").exists()


@pytest.mark.parametrize(
    "template, why",
    [
        (
            "{% for m in messages %}{% if m.role == 'system' %}{{ raise_exception('no system') }}{% endif %}"
            "{{ m.content }}{% endfor %}",
            "its chat template refuses it: no system",
        ),
        ("{{ messages[-1].content }}", "its chat template leaves it out"),
    ],
)
def test_a_template_without_place_for_it_is_named(tmp_path, capsys, template, why):
    import shutil

    folder = tmp_path / "llama"
    shutil.copytree(ROOT / "data" / "models" / "tiny-llama", folder)
    (folder / "chat_template.jinja").write_text(template)
    model = ["--model", str(folder), "--data", "bulletin:test:1"]
    assert generate(tmp_path / "bank", "--system", SYSTEM, model=model) == 2
    error = capsys.readouterr().err
    assert f"takes no system message, {why}. Leave" in error and error.count("\n") == 1
    assert generate(tmp_path / "bank", model=model) == 0


def test_a_server_is_sent_the_system_message(tmp_path, server):
    model = ["--model", "toy", "--data", "bulletin:test:1"]
    endpoint = f"http://127.0.0.1:{server.server_port}/v1"
    options = ["--endpoint", endpoint, "--prompt", "In one word: {source}", "--system", SYSTEM]
    assert generate(tmp_path / "bank", *options, model=model) == 0
    for call in server.calls:
        first, second = call["messages"]
        assert first == dict(role="system", content=SYSTEM)
        assert second["role"] == "user" and second["content"].startswith("In one word: ")
    assert recorded(tmp_path / "bank")["settings"]["system"] == SYSTEM
