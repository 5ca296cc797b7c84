"""Many clients of a server: every stream is whole or an error, and the sentence says what was found."""

import http.server
import threading

import pytest

from uetrust.core.settings import root
from uetrust.dev.bench import clients
from uetrust.dev.bench.clients import _streaming_clients


def test_two_clients_of_the_small_llama_get_whole_texts():
    found = _streaming_clients(root() / "data" / "models" / "tiny-llama", clients=2, seconds=1.0, tokens=4)
    assert found["clients"] == 2 and found["replies"] >= 2 and found["errors"] == 0
    assert 0 < found["first_median"] <= found["median"] <= found["p95"] and found["seconds"] >= 1
    assert found["memory_peak"] >= found["memory_before"] > 1e6


def test_a_server_that_does_not_start_is_named(tmp_path):
    with pytest.raises(ChildProcessError, match="did not start"):
        _streaming_clients(tmp_path / "nothing", clients=1, seconds=0.1)


@pytest.mark.parametrize(
    "status, body, whole",
    [
        (200, b'data: {"choices": []}\n\ndata: [DONE]\n\n', True),
        (200, b'data: {"choices": []}\n\n', False),
        (503, b'data: {"choices": []}\n\ndata: [DONE]\n\n', False),
        (200, b'{"error": "no"}', False),
    ],
)
def test_a_stream_is_whole_when_its_end_came(status, body, whole):
    class Handler(http.server.BaseHTTPRequestHandler):
        def do_POST(self):
            self.rfile.read(int(self.headers["Content-Length"]))
            self.send_response(status)
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_):
            pass

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        first, end, good = clients._streamed_text(server.server_port, "m", 0, 4)
        server.shutdown()
    assert good is whole and 0 < first <= end
