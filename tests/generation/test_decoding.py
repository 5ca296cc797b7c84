"""Decoding: presets resolve against the checkpoint, and noise depends on every key."""

from typing import get_type_hints

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from tests.helpers.writers import tiny
from uetrust.core.settings import parse_section
from uetrust.generation import local
from uetrust.generation.decoding import (
    DEFAULT_DECODING,
    HE2024_DECODING,
    Decoding,
    resolved_settings,
    settings_to_record,
    text_seed,
)
from uetrust.generation.local import _local_provenance


def test_every_step_draws_anew():
    step = local._GumbelMax([7, None, 9], resolved_settings(DEFAULT_DECODING), "cpu")
    flat = torch.tensor([[0.0] * 49 + [1e-3]] * 3)
    drawn = [step(torch.zeros(3, 1), flat).argmax(1).tolist() for _ in range(40)]
    assert (
        len({tokens[0] for tokens in drawn}) > 15
        and {tokens[1] for tokens in drawn} == {49}
        and [tokens[0] for tokens in drawn] != [tokens[2] for tokens in drawn]
    )


@given(st.integers(), st.text(max_size=5), st.integers(0, 20))
def test_keys_fit_64_bits_and_differ_by_every_argument(seed, sample, k):
    own = text_seed(seed, sample, k)
    assert (
        0 <= own < 2**64
        and len(
            {
                own,
                text_seed(seed + 1, sample, k),
                text_seed(seed, sample + "x", k),
                text_seed(seed, sample, k + 1),
            }
        )
        == 4
    )


# Settings and provenance
def test_presets_resolve_against_the_checkpoint():
    model = tiny("llama")
    recorded = _local_provenance(model, "d", "g", HE2024_DECODING)["settings"]
    assert (
        recorded["temperature"],
        recorded["top_p"],
        recorded["top_k"],
        recorded["max_new_tokens"],
        recorded["min_length"],
        recorded["samples"],
    ) == (
        1,
        1,
        50,
        100,
        2,
        10,
    )
    assert (
        recorded["prompt"] == "Only give the summary of below text. \n {source}"
        and recorded["dtype"] == "float32"
    )
    model.model.generation_config.update(temperature=0.6, top_p=0.9)
    recorded = _local_provenance(model, "d", "g", HE2024_DECODING)["settings"]
    assert (recorded["temperature"], recorded["top_p"], recorded["top_k"]) == (0.6, 0.9, 50)
    assert (
        _local_provenance(model, "d", "g", DEFAULT_DECODING)["settings"]["top_k"] == 0
        and _local_provenance(tiny("bart"), "d", "g", HE2024_DECODING)["settings"]["prompt"] == "{source}"
    )
    assert None not in settings_to_record(resolved_settings(HE2024_DECODING), "{source}").values()


RANGES = {  # Setting -> values at its ends, and values beyond them
    "samples": ("0 1", "-1"),
    "beams": ("0 1", "-1"),
    "max_new_tokens": ("1 2", "0 -1"),
    "min_length": ("0 1", "-1"),
    "max_prompt": ("1 2", "0"),
    "top_k": ("0 1", "-1"),
    "temperature": ("1e-9 100", "0 -1 inf"),
    "top_p": ("1e-9 1", "0 -0.5 1.001"),
}


@pytest.mark.parametrize("setting", RANGES)
def test_a_setting_outside_its_range_is_refused_by_name_in_python_and_in_settings_ini(setting):
    inside, outside = map(str.split, RANGES[setting])
    types = get_type_hints(Decoding, include_extras=True)
    for text in inside:
        read = parse_section("generator", "mine", {setting: text}, types)
        assert getattr(Decoding(**read), setting) == float(text)
    for text in outside:
        with pytest.raises(ValueError, match=f"out of range: {{'{setting}'"):
            Decoding(**{setting: float(text) if setting in ("temperature", "top_p") else int(text)})
        with pytest.raises(ValueError) as error:
            parse_section("generator", "mine", {setting: text}, types)
        message = str(error.value)
        assert (
            message.startswith(f"settings.ini [generator.mine] {setting} = {text}: expected")
            and "than" in message
        )
