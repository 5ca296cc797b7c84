"""The command line on good and on malformed files."""

import json
import subprocess
import sys

import numpy as np
import pandas as pd
import pytest

from uetrust.cli.cli import main
from uetrust.evaluation.prr import prr
from uetrust.report.chapters import save_table


@pytest.fixture
def scores():
    rng = np.random.default_rng(0)
    quality = rng.normal(size=30)
    return pd.DataFrame(
        dict(
            sample=[f"s{i}" for i in range(30)],
            rouge=quality,
            judge=np.clip(np.round(5 + quality), 1, 10),
            msp=-quality + rng.normal(size=30),
            sets=rng.integers(1, 4, 30),
        )
    )


def call(capsys, *argv):
    code = main([str(a) for a in argv])
    out = capsys.readouterr()
    return code, out.out, out.err


@pytest.mark.parametrize("end", ["csv", "parquet", "jsonl", "json"])
def test_prr_prints_the_numbers_of_the_library(scores, tmp_path, capsys, end):
    file = tmp_path / f"scores.{end}"
    write = dict(
        csv=lambda: scores.to_csv(file, index=False),
        parquet=lambda: scores.to_parquet(file),
        jsonl=lambda: scores.to_json(file, orient="records", lines=True),
        json=lambda: scores.to_json(file, orient="records"),
    )
    write[end]()
    options = "--id sample --quality rouge judge --uncertainty msp sets --json".split()
    code, out, _ = call(capsys, "prr", file, *options)
    found = {(row["method"], row["metric"]): row for row in json.loads(out)}
    assert code == 0 and len(found) == 4
    for (method, metric), row in found.items():
        assert row["value"] == pytest.approx(prr(scores[metric], scores[method]).value, abs=1e-8)
        assert row["n"] == 30
    assert "tied" in found["sets", "rouge"]["note"]


def test_options_reach_the_library(scores, tmp_path, capsys):
    file = tmp_path / "s.csv"
    clusters = [i // 3 for i in range(30)]
    scores.assign(doc=clusters).to_csv(file, index=False)
    options = "--quality rouge --uncertainty sets --area sum --ties worst --clusters doc --json".split()
    row = json.loads(call(capsys, "prr", file, *options)[1])[0]
    want = prr(scores.rouge, scores.sets, area="sum", ties="worst", clusters=clusters)
    assert (row["value"], row["se"]) == pytest.approx((want.value, want.se), abs=1e-8)
    options = "--quality rouge --uncertainty msp --compat he2024 --json".split()
    row = json.loads(call(capsys, "prr", file, *options)[1])[0]
    assert row["value"] == pytest.approx(prr(scores.rouge, scores.msp, compat="he2024").value, abs=1e-8)


MALFORMED = dict(
    wrong_column=("sample,rogue,msp\na,1,2\nb,2,1\nc,3,3\n", "has no column 'rouge'. Did you mean ['rogue']"),
    text=("sample,rouge,msp\na,1,2\nb,good,1\nc,3,3\n", "'good' at sample b"),
    empty=("", "is empty: it has no header"),
    header_only=("sample,rouge,msp\n", "is empty"),
    one_row=("sample,rouge,msp\na,1,2\n", "has 1 sample;"),
    all_equal=("sample,rouge,msp\na,1,2\nb,1,3\nc,1,4\n", "constant quality"),
    all_uncertain_alike=("sample,rouge,msp\na,1,2\nb,2,2\nc,3,2\n", "nothing is ranked"),
    twice=("sample,rouge,msp\na,1,2\na,2,1\nc,3,3\n", "duplicated sample names: a"),
    infinite=("sample,rouge,msp\na,1,2\nb,inf,1\nc,3,3\n", "must be finite"),
    all_missing=("sample,rouge,msp\na,,2\nb,,1\nc,,3\n", "0 pairs"),
    ragged=("sample,rouge,msp\na,1,2\nb,2,1,9,9\nc,3,3\n", "line 3 has 5 fields"),
)


@pytest.mark.parametrize("name", MALFORMED)
def test_malformed_files_are_explained(name, tmp_path, capsys):
    text, says = MALFORMED[name]
    file = tmp_path / f"{name}.csv"
    file.write_text(text)
    code, out, err = call(capsys, "prr", file, "--id", "sample", "--quality", "rouge", "--uncertainty", "msp")
    assert code == 2 and out == "" and says in err and file.name in err and "Traceback" not in err


@pytest.mark.parametrize(
    "argv,says",
    [
        (("--quality", "rouge", "--scale", "judge"), "COLUMN=LOWEST:HIGHEST"),
        (("--quality", "rouge", "--scale", "rouge=0:.1"), "off its scale"),
        (("--quality", "rouge", "--max-rejection", "2"), "--max-rejection"),
        (("--quality", "rouge", "--scale", "jugde=1:2"), "jugde"),
    ],
)
def test_wrong_options_are_explained(scores, tmp_path, capsys, argv, says):
    file = tmp_path / "s.csv"
    scores.to_csv(file, index=False)
    code, _, err = call(capsys, "prr", file, "--uncertainty", "msp", *argv)
    assert code == 2 and says in err


def test_missing_and_foreign_files(tmp_path, capsys):
    assert (
        "there is no file"
        in call(capsys, "prr", tmp_path / "no.csv", "--quality", "a", "--uncertainty", "b")[2]
    )
    (tmp_path / "x.ods").write_text("")
    assert "not .ods" in call(capsys, "prr", tmp_path / "x.ods", "--quality", "a", "--uncertainty", "b")[2]
    (tmp_path / "x.parquet").write_text("not parquet")
    assert (
        "cannot be read as parquet"
        in call(capsys, "prr", tmp_path / "x.parquet", "--quality", "a", "--uncertainty", "b")[2]
    )


def test_claims_as_json_csv_and_filtered(capsys, tmp_path):
    rows = json.loads(call(capsys, "claims", "--json", "--draws", 20)[1])
    assert len(rows) == 154 and {row["verdict"] for row in rows} == {
        "holds",
        "partly",
        "fails",
        "not decidable",
    }
    by_id = {row["id"]: row for row in rows}
    assert by_id["4.2-01"]["shuffle_share"] == 1 and by_id["C1.6-01"]["joint_p"] < 0.05
    weak = by_id["4.2-12"]
    assert (weak["equivalence"], weak["margin"], by_id["4.2-01"]["equivalence"]) == ("not shown", 0.3, "")
    wide = json.loads(call(capsys, "claims", "--json", "--draws", 0, "--shuffles", 9, "--margin", 0.5)[1])
    row = {row["id"]: row for row in wide}["4.2-12"]
    assert (row["equivalence"], row["margin"]) == ("shown", 0.5)
    assert row["shuffle_share"] in (np.arange(10) / 9).round(10)
    failed = call(capsys, "claims", "--csv", "--verdict", "fails", "--section", "C.2.4", "--draws", 0)[
        1
    ].splitlines()
    assert len(failed) == 2 and failed[1].startswith("C2.4-05")
    for table in ("T9", "T11"):
        save_table(table, tmp_path)
    own = json.loads(call(capsys, "claims", "--json", "--tables", tmp_path, "--draws", 0)[1])
    open_ = [row for row in own if row["verdict"] == "not decidable"]
    assert 100 < len(open_) < 154 and any("T7" in row["note"] for row in open_)
    assert {row["id"]: row["verdict"] for row in own}["C2.2-03"] == "holds"


@pytest.mark.parametrize("command", [(), ("prr",), ("claims",), ("run",), ("report",), ("bench",)])
def test_every_help_shows_an_example(command):
    out = subprocess.run(
        [sys.executable, "-c", "from uetrust.cli.cli import main; main()", *command, "--help"],
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    assert "example: uetrust" in out


# Generation


def bart():
    from uetrust.core.settings import oracles

    if oracles() is None:
        pytest.skip("UETRUST_ORACLES is not at hand")
    return oracles() / "seed_systems" / "models" / "tiny_bart"


def test_generate_fills_a_bank_once_and_refuses_other_settings(tmp_path, capsys):
    from uetrust.generation.bank import read_bank

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
    assert read_bank(tmp_path / "bank").attrs["about"]["dataset"] == "bulletin"


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


def test_a_report_is_shown_without_being_written_again(tmp_path, monkeypatch, capsys):
    import webbrowser

    from uetrust.core import settings

    shown = []
    monkeypatch.setattr(webbrowser, "open", shown.append)
    monkeypatch.setattr(settings, "out_dir", lambda name: tmp_path)
    (tmp_path / "report").mkdir()
    page = tmp_path / "report" / "index.html"
    page.write_text("as it was")
    assert main(["report", "--profile", "smoke", "--open"]) == 0
    assert shown == [page.as_uri()]
    assert page.read_text() == "as it was"
    assert page.as_uri() in capsys.readouterr().out
