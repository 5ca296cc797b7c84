"""Write what other packages offer to data/peers.csv: every estimator, scorer and metric, by their names.

python scripts/peer_names.py LM-Polygraph=0.7.0=FOLDER uqlm=0.6.7=FOLDER TruthTorchLM=1b4a8d7=FOLDER

FOLDER holds the package as it is installed (lm_polygraph, uqlm) or its sources (TruthTorchLM/truth_methods).
The files are parsed and not imported. Our names and reasons for what was there stay; new names have none, and
tests/project/test_peers.py names them.
"""

import ast
import sys
from pathlib import Path

import pandas as pd

from uetrust.core.settings import root

PEERS = root() / "data" / "peers.csv"


def imported(file):
    "Names that an __init__ file imports from its package."
    found = [node for node in ast.walk(ast.parse(file.read_text())) if isinstance(node, ast.ImportFrom)]
    return [alias.name for node in found if node.level for alias in node.names]


def constants(file, *names):
    "Texts of lists and keys of dicts of a file, by the names that they are assigned to."
    found = {}
    for node in ast.walk(ast.parse(file.read_text())):
        if isinstance(node, ast.Assign) and getattr(node.targets[0], "id", "") in names:
            inside = node.value.keys if isinstance(node.value, ast.Dict) else ast.walk(node.value)
            texts = [
                one.value for one in inside if isinstance(one, ast.Constant) and isinstance(one.value, str)
            ]
            found[node.targets[0].id] = texts
    return [text for name in names for text in found[name]]


def lm_polygraph(folder):
    for what in ("estimators", "generation_metrics", "ue_metrics"):
        yield from ((what, name) for name in imported(folder / what / "__init__.py"))


def uqlm(folder):
    short, long = folder / "scorers" / "shortform", folder / "scorers" / "longform"
    base = short / "baseclass" / "uncertainty.py"
    for what, file, names in (
        (
            "black box",
            short / "baseclass" / "uncertainty.py",
            ("DEFAULT_BLACK_BOX_SCORERS", "BLACK_BOX_SCORERS"),
        ),
        ("white box", folder / "white_box" / "single_logprobs.py", ("SINGLE_LOGPROBS_SCORER_NAMES",)),
        ("white box", folder / "white_box" / "top_logprobs.py", ("TOP_LOGPROBS_SCORER_NAMES",)),
        ("white box", folder / "white_box" / "sampled_logprobs.py", ("SAMPLED_LOGPROBS_SCORER_NAMES",)),
        ("white box", base, ("ALL_WHITE_BOX_SCORERS",)),
        ("judge", folder / "utils" / "prompts" / "judge_prompts.py", ("TEMPLATE_TO_INSTRUCTION",)),
        ("unit response", long / "longtext.py", ("UNIT_RESPONSE_SCORERS",)),
        ("matched unit", long / "longtext.py", ("UNIT_RESPONSE_SCORERS", "MATCHED_UNIT_SCORERS")),
        ("graph", long / "graph.py", ("GRAPH_SCORERS",)),
    ):
        yield from ((what, name) for name in constants(file, *names))
    yield from (("class", name) for name in constants(short / "__init__.py", "__all__"))
    yield from (("class", name) for name in constants(long / "__init__.py", "__all__"))


def truth_torch_lm(folder):
    yield from (("truth methods", name) for name in constants(folder / "__init__.py", "__all__"))


READ = {"LM-Polygraph": lm_polygraph, "uqlm": uqlm, "TruthTorchLM": truth_torch_lm}


def main():
    rows = []
    for given in sys.argv[1:]:
        peer, version, folder = given.split("=", 2)
        rows += [(peer, version, what, name) for what, name in dict.fromkeys(READ[peer](Path(folder)))]
    keys = ["peer", "what", "name"]
    table = pd.DataFrame(rows, columns=["peer", "version", "what", "name"])
    known = pd.read_csv(PEERS, keep_default_na=False) if PEERS.exists() else table.assign(ours="", reason="")
    table = table.merge(known[[*keys, "ours", "reason"]], on=keys, how="left").fillna("")
    table.to_csv(PEERS, index=False)


if __name__ == "__main__":
    main()
