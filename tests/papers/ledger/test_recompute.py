"""What released files decide of the cells: never an unprinted number, and every missing file is named."""

import shutil

import pytest

from tests.helpers.ledgers import cells, needs_data, pick
from uetrust.core.settings import mirror
from uetrust.papers.ledger import cells as ledger
from uetrust.papers.ledger.recompute import RECOMPUTED_PARTS


def test_a_part_that_gives_an_unprinted_number_is_refused():
    part = RECOMPUTED_PARTS[0]._replace(fn=lambda: {("No such row", "", "x"): 1.0})
    with pytest.raises(ValueError, match="No such row"):
        ledger._fill_part(ledger.printed_numbers().assign(recomputed=0.0, how="", data="", reason=""), part)


def test_without_mirror_and_network_the_copies_are_read_and_every_other_file_is_named(tmp_path):
    done = cells(tmp_path, UETRUST_MIRROR="/nonexistent")
    assert done.returncode == 0 and "34 recomputed, equal, 0 recomputed, different" in done.stdout
    for name in (
        "ice/data_sms.json",
        "summeval/data.pkl",
        "qags/qags_cnndm_result.json",
        "ice/gpt_summaries_converted.json",
    ):
        assert f"data not at hand: {name}" in done.stdout


@needs_data
def test_data_not_in_the_mirror_is_named_in_the_ledger(led):
    if "QAGS" not in set(ledger.parts_without_data()["data"]):
        pytest.skip("QAGS is at hand")
    assert set(pick(led, paper="FFLM", table=3, row="Rouge-2", group="QAGSXSUM")["reason"]) == {
        "QAGS is not at hand"
    }
    assert not (pick(led, paper="FFLM", table=3, row="BARTScore")["reason"] == "QAGS is not at hand").any()


@needs_data
@pytest.mark.parametrize(
    "harm,says",
    [
        (lambda b: b[:1000] + bytes([b[1000] ^ 1]) + b[1001:], "damaged or another version"),
        (lambda b: b[:-10], "cut short"),
    ],
)
def test_a_damaged_file_stops_the_ledger_with_its_name_and_no_output(tmp_path, harm, says):
    shutil.copytree(mirror() / "frank", tmp_path / "frank")
    path = tmp_path / "frank" / "human_annotations.json"
    path.chmod(0o644)
    path.write_bytes(harm(path.read_bytes()))
    done = cells(tmp_path, "--json", UETRUST_MIRROR=str(tmp_path))
    assert (
        done.returncode == 2
        and done.stdout == ""
        and "frank/human_annotations.json" in done.stderr
        and says in done.stderr
        and "sha256" in done.stderr
    )
