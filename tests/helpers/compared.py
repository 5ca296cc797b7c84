"""What the tests of table share."""

# Between texts
TEXTS = dict(a=["w1 w2", "w3", "w1 w2", "w4 w5 w6"], b=["w7", "w7", "w7", "w7"])
