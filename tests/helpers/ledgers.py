"""What the tests of cells share."""

import subprocess
import sys

import pytest

from uetrust.core.settings import mirror, root

needs_data = pytest.mark.skipif(mirror() is None, reason="UETRUST_MIRROR is not at hand")
RUN = [sys.executable, "-c", "import sys; from uetrust.cli.cli import main; sys.exit(main(sys.argv[1:]))"]


# Without data, and with damaged data
def cells(tmp_path, *args, **env):
    import os

    full = os.environ | dict(UETRUST_CACHE=str(tmp_path / "cache"), UETRUST_OFFLINE="1") | env
    return subprocess.run([*RUN, "cells", *args], cwd=root(), env=full, capture_output=True, text=True)


def pick(led, **where):
    for column, value in where.items():
        led = led[led[column] == value]
    return led
