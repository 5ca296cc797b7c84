"""Files with the shape of He et al.'s prompt files and other words."""

import hashlib

import pytest

from uetrust.data import download
from uetrust.nlg.judge import RELEASED_PROMPTS

DEFINED = {
    dim: f"birds with {dim}" for dim in ("overall", "coherence", "consistency", "fluency", "relevance")
}
_SHAPE = '''
import openai_of_another_name  # Would fail, if the file were run

raise SystemExit("was run")


class Judge_Metric:
    """
    Rates {{birds}}.
    """

    def __init__(self, depend=["x"], model="old-model", task="naming birds", view=None):
        self.task = task
        self.keyword_list = ["overall", "fluency"]
        self.table = {defined!r}

    def __str__(self):
        return f"judge_{{self.model}}_{{self.task}}"

    def _ask(self, {arguments}):
        inp = inp[39:]
        completion = self.client.chat.completions.create(
            model="old-model",
            messages=[
                # A comment with a {{brace}}
                {message},
            ],
            logprobs=True,
            seed=42,
        )
        return completion
'''
# Family -> arguments, message
MESSAGES = dict(
    wo=(
        "hyp, ref, aspect",
        '{"role": "system", "content": "Unused.", "role": "user", '
        '"content": f"A {hyp} of {ref}? {aspect}, {self.task}: [1, 5]."}',
    ),
    wi_gt=(
        "gen, ref, inp, aspect",
        '{"role": "user", "content": f"B {gen}|{ref} {aspect} {self.table[aspect]}"}',
    ),
    wi_in=(
        "gen, ref, inp, aspect",
        '{"role": "user", "content": f"C {gen}|{inp} {aspect} {self.table[aspect]}"}',
    ),
    wi_ingt=(
        "gen, ref, inp, aspect",
        '{"role": "user", "content": f"D {gen}|{inp}|{ref} {aspect} {self.table[aspect]}"}',
    ),
)


SOURCES, _ = download.sources(), download.pinned_files()  # Both are read before a test moves the root


@pytest.fixture
def released_prompts(tmp_path, monkeypatch):
    "A function that writes the files of some families into the cache; their hashes are the known ones."
    monkeypatch.setenv("UETRUST_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("UETRUST_OFFLINE", "1")

    def write(families=tuple(MESSAGES), messages=MESSAGES):
        table = SOURCES.copy()
        for family in families:
            arguments, message = messages[family]
            path = tmp_path / "cache" / RELEASED_PROMPTS[family]
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(_SHAPE.format(defined=DEFINED, arguments=arguments, message=message))
            content = path.read_bytes()
            table.loc[RELEASED_PROMPTS[family], ["sha256", "bytes"]] = (
                hashlib.sha256(content).hexdigest(),
                len(content),
            )
        monkeypatch.setattr(download, "_registry", lambda: table)
        return tmp_path / "cache" / "he2024_prompts"

    return write
