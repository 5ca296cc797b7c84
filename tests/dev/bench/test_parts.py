"""Parts of the benchmark as a command: its options, and what make prepares for it."""

import re
import subprocess
import sys

from uetrust.core.settings import root
from uetrust.dev.bench.parts import SIMULATED


def test_a_number_of_studies_is_a_number(tmp_path):
    command = [sys.executable, "-m", "uetrust.dev.bench", "power", "--studies", "many"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 2 and "--studies" in done.stderr and "Traceback" not in done.stderr


def test_make_prepares_no_peer_for_what_is_simulated():
    named = re.search(r"^SIMULATED := (.*)$", (root() / "Makefile").read_text(), re.M)[1]
    assert set(named.split()) == set(SIMULATED)
