"""Generation on the command line: a bank is filled once, a dry run asks nobody."""

import json

import pytest

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
    assert not server.calls
    assert "requests 4; cached 0" in capsys.readouterr().out
    assert main(ask) == 0
    assert "8 texts of 2 sources by toy" in capsys.readouterr().out
    sent = len(server.calls)
    assert main(ask) == 0
    assert len(server.calls) == sent == 4


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
