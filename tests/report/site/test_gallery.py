"""The gallery of methods: a card shows what was measured and how to compute it."""

import json

from tests.helpers.sites import COUNTS
from uetrust.report.site import exhibits as index
from uetrust.report.site.gallery import gallery
from uetrust.report.site.write import _site_index


def test_the_search_field_has_the_index_of_find(site):
    entries = json.loads((site / "index.js").read_text().removeprefix("const INDEX = ").rstrip(";\n"))
    named = [entry for entry in entries if entry[4]]
    assert len(named) == len(index.exhibits()) == sum(map(sum, COUNTS.values()))
    assert ["Figure 23 of He et al. 2024", "paper-he2024.html#figure23"] in [entry[:2] for entry in named]
    assert entries == _site_index([], dict(methods=gallery("ue"), metrics=gallery("nlg")))[: len(named)] + [
        entry for entry in entries if not entry[4]
    ]


def test_a_card_shows_what_was_measured_and_how_to_compute_it():
    cards = {card["name"]: card for card in gallery("ue") + gallery("nlg")}
    assert {"formula", "cite", "pitfall", "code"} <= {key for key, value in cards["msp"].items() if value}
    assert any(line.startswith("Bulletins, tiny-bart: PRR") for line in cards["msp"]["measured"])
    assert any("language pairs" in line for line in cards["msp"]["measured"])
    assert any("loses" in line and "[" in line for line in cards["chrf"]["measured"])
    assert any(line.startswith("Speed") for line in cards["rouge_l"]["measured"])
