"""What transformers will take away is not used: writing and reading give no warning of it. 5.24 gives one of
`past_key_values` where the keys and values of earlier tokens go by that name."""

import warnings

import pytest

from tests.helpers.fake_cuda import filled, project  # noqa: F401
from uetrust.generation.decoding import Decoding
from uetrust.generation.local import generate_texts
from uetrust.models import load
from uetrust.models.load import load_model


def warnings_of(run, *given):
    "What is said of the future while `run` runs"
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        run(*given)
    return [str(one.message) for one in seen if one.category in (FutureWarning, DeprecationWarning)]


@pytest.mark.parametrize("name", ["bart", "llama"])
def test_all_passes_over_texts_use_nothing_that_will_go(here, name):
    assert warnings_of(filled, "cpu", name) == []


@pytest.mark.parametrize("name", ["bart", "llama"])
def test_a_network_that_warns_of_an_argument_would_be_heard(here, monkeypatch, name):
    import pandas as pd

    model = load_model(here / "models" / name, device="cpu")
    part = model.model.get_decoder() if name == "bart" else model.model.base_model

    def warn(module, given, named):
        if load.CACHE in named:
            warnings.warn(f"`{load.CACHE}` is deprecated", FutureWarning, stacklevel=2)

    part.register_forward_pre_hook(warn, with_kwargs=True)
    samples = pd.DataFrame(dict(id=["a"], source=["w1 w2 w3"]))
    heard = warnings_of(generate_texts, model, samples, Decoding(samples=1, max_new_tokens=4))
    assert f"`{load.CACHE}` is deprecated" in heard
