"""What the tests of loaders share."""

import hashlib

import pytest

from uetrust.core.settings import mirror

real = pytest.mark.skipif(mirror() is None, reason="UETRUST_MIRROR is not at hand")
GOOD, NAME = b"id,score\na,0.5\nb,1.0\n", "toy/scores.csv"


def sha(content):
    return hashlib.sha256(content).hexdigest()


ICE_FILE = "ice/data_sms.json"
