"""Everything that LM-Polygraph, uqlm and TruthTorchLM offer has a score here, or a reason why not."""

import subprocess
import sys

import pandas as pd
import pytest

import uetrust
from uetrust.core.registry import reg
from uetrust.core.settings import root
from uetrust.evaluation import calibration, measures
from uetrust.scoring.trained.features import TRAINED_METHODS
from uetrust.statistics.scores import load_scores

PEERS = pd.read_csv(root() / "data" / "peers.csv", keep_default_na=False)
MEASURES = calibration, measures  # Their import registers what they measure
KNOWN = {*load_scores(), *reg, *TRAINED_METHODS, "prr"}  # PRR is a function of its own


def test_the_lists_are_whole_and_name_each_thing_once():
    assert not PEERS.duplicated(["peer", "what", "name"]).any()
    versions = PEERS.groupby("peer")["version"].unique().map(list).to_dict()
    assert versions == {"LM-Polygraph": ["0.7.0"], "uqlm": ["0.6.7"], "TruthTorchLM": ["1b4a8d7"]}
    n = PEERS.groupby(["peer", "what"]).size()
    assert n["LM-Polygraph", "estimators"] == 84 and n["LM-Polygraph", "ue_metrics"] == 9
    assert n["TruthTorchLM", "truth methods"] == 26 and n["uqlm", "white box"] == 10
    assert callable(uetrust.prr)


@pytest.mark.parametrize("peer", PEERS["peer"].unique())
def test_each_of_them_has_our_name_or_a_reason(peer):
    for row in PEERS[PEERS["peer"] == peer].itertuples():
        ours = row.ours.split()
        assert ours or len(row.reason) > 15, (
            f"{peer}, {row.what}: {row.name} has neither our name nor a reason"
        )
        unknown = [name for name in ours if name not in KNOWN]
        assert not unknown, f"{row.name}: nothing here is called {unknown}"


def test_the_script_finds_the_names_and_keeps_what_is_known(tmp_path, monkeypatch):
    for what in ("estimators", "generation_metrics", "ue_metrics"):
        (tmp_path / what).mkdir()
        (tmp_path / what / "__init__.py").write_text(
            "import os\nfrom .msp import (\n    Perplexity, New,\n)\n"
        )
    names = run_script(f"LM-Polygraph=9={tmp_path}", tmp_path)
    rows = names[names["what"] == "estimators"].set_index("name")
    assert list(rows.index) == ["Perplexity", "New"] and set(rows["version"].astype(str)) == {"9"}
    assert rows.at["Perplexity", "ours"] == "perplexity" and rows.at["New", "ours"] == ""


def run_script(argument, folder):
    "The table that the script writes, beside a copy of the settings"
    for file in ("settings.ini", "data/peers.csv"):
        (folder / file).parent.mkdir(exist_ok=True)
        (folder / file).write_text((root() / file).read_text())
    (folder / "nbs").mkdir()
    line = [sys.executable, str(root() / "scripts" / "peer_names.py"), argument]
    subprocess.run(line, cwd=folder, check=True)
    return pd.read_csv(folder / "data" / "peers.csv", keep_default_na=False)
