"""What the tests of site share."""

COUNTS = dict(he2024=(11, 41), ice=(2, 4), fflm=(13, 3), narcissism=(5, 6), threshold=(5, 4))
EVIL = '<script>alert("x")</script>'
