"""Audit panel on a truth with gaps."""

# ruff: noqa: F811

from tests.helpers.few_labels import (
    labels_of,
    texts,  # noqa: F401
)
from uetrust import prr_from_labels


def test_audit_of_a_truth_with_gaps(texts, tmp_path, capsys):
    "The command line tells the PRR of all texts, and what labels alone would tell."
    from uetrust.cli.cli import main

    scores = texts.assign(human=labels_of(texts, 100)).rename_axis("sample").reset_index()
    scores[["sample", "human", "close", "unsure"]].to_csv(tmp_path / "scores.csv", index=False)
    words = ["--id", "sample", "--quality", "human", "close", "--truth", "human", "--uncertainty", "unsure"]
    assert main(["audit", str(tmp_path / "scores.csv"), *words]) == 0
    told = " ".join(capsys.readouterr().out.split())
    assert "If the 100 texts with human were drawn evenly at random from the 600, unsure has" in told
    found = prr_from_labels(scores["human"], scores[["close"]], scores["unsure"])
    assert f"{found.value:.3f} [{found.lo:.3f}, {found.hi:.3f}]" in told
