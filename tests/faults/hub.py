"""Checkpoints and datasets of the model hub where there is no network: refused in 5 seconds."""

import json

from tests.faults.harness import fault

NOWHERE = dict(HF_HUB_OFFLINE="0", HF_ENDPOINT="http://127.0.0.1:9")  # A port where nothing listens
GENERATE = "generate bank --samples 1 --max-new-tokens 4"
COMMANDS = dict(
    generate=f"{GENERATE} --model facebook/bart-large-cnn --data bulletin:test:2",
    pinned=f"{GENERATE} --model facebook/bart-large-cnn@0a1b2c --data bulletin:test:2",
    serve="serve org/name --port 0",
    metric="score texts.jsonl --metric bart_score --model bart=facebook/bart-large-cnn",
    methods="score texts.jsonl --method eigv --model nli=microsoft/deberta-large-mnli",
    dataset="score hub:owner/name:test",
)
TEXT = dict(
    id="a", source="It rained.", hypothesis="Rain.", reference="Rain fell.", samples=["Rain.", "Sun."]
)


@fault("error", "cannot be reached at http://127.0.0.1:9", cases=COMMANDS, env=NOWHERE, limit=5)
def no_network_for(folder, command):
    (folder / "texts.jsonl").write_text(json.dumps(TEXT) + "\n")
    return command.split()
