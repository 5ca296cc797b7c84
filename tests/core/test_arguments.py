"""Types of arguments: what is refused, and in which words."""

import numpy as np
import pandas as pd
import pytest

from uetrust.core.arguments import check_arguments, checks_arguments, of_missing_package, wanted_arguments


@checks_arguments
def toy(
    quality,
    uncertainty=None,
    area: str = "mean",
    draws: int | None = None,
    table: pd.DataFrame = None,
    seed=0,
    **more,
):
    return table[area] if table is not None else table[more["key"]] if more.get("key") else quality


@pytest.mark.parametrize(
    "given",
    [
        dict(quality=np.array([0.1, 0.2])),
        dict(quality=pd.Series([0.1, 0.2])),
        dict(quality=pd.DataFrame(dict(a=[0.1]))),
        dict(quality=(0.1, None), draws=np.int64(3)),
        dict(quality=[0.1], uncertainty=pd.Series([0.1, 0.2])),
        dict(quality=[0.1], draws=None, seed=np.random.default_rng(0)),
    ],
)
def test_what_works_is_passed_on(given):
    assert toy(**given) is given["quality"]


@pytest.mark.parametrize(
    "given, says",
    [
        (
            dict(quality="words"),
            "quality must be a list, array or Series with a value per text, got 'words' (str)",
        ),
        (
            dict(quality={"a": 1}),
            "quality must be a list, array or Series with a value per text, got {'a': 1}",
        ),
        (dict(quality=[1], area=3), "area must be a text, got 3 (int)"),
        (dict(quality=[1], draws="many"), "draws must be a whole number or None, got 'many' (str)"),
        (dict(quality=[1], table=[1]), "table must be a DataFrame or None, got [1] (list)"),
        (dict(quality=[1], seed="x"), "seed must be an integer or a generator, got 'x' (str)"),
        (dict(quality=[1], uncertainty=[1, 2]), "in each list: quality has 1, uncertainty has 2"),
        (dict(quality=[1], table=pd.DataFrame(dict(a=["x"]))), "table must be numbers, got a DataFrame with"),
        (
            dict(quality=[1], table=pd.DataFrame(dict(a=[1.0]))),
            "column 'mean' is unknown; table has the columns a",
        ),
        (
            dict(quality=[1], area="sum", table=pd.DataFrame(dict(a=[1.0]))),
            "area 'sum' is unknown; table has the columns a",
        ),
    ],
)
def test_what_does_not_work_is_named_with_what_would(given, says):
    with pytest.raises(ValueError) as error:
        toy(**given)
    assert says in str(error.value) and "\n" not in str(error.value)


def test_an_error_of_our_own_is_not_put_down_to_an_argument():
    @checks_arguments
    def broken(quality):
        return {}["key"]

    with pytest.raises(KeyError, match="key"):
        broken([1])


def test_an_argument_too_many_or_too_few_is_left_to_python():
    with pytest.raises(TypeError, match="missing 1 required positional argument: 'quality'"):
        toy()
    with pytest.raises(TypeError, match="unexpected keyword argument"):
        checks_arguments(lambda quality: quality)([1], colour="red")


def test_a_default_is_never_wrong():
    def odd(quality: str = 3):
        return quality

    check_arguments(wanted_arguments(odd), dict(quality=3))


def test_a_missing_package_is_named_with_its_remedy():
    @checks_arguments
    def reading(path):
        raise ModuleNotFoundError("No module named 'torch'", name="torch")

    with pytest.raises(ModuleNotFoundError, match=r"reading: .* torch: pip install 'uetrust\[models\]'"):
        reading("x")
    gone = ModuleNotFoundError("No module named 'uetrust.gone'", name="uetrust.gone")
    assert of_missing_package("prr", gone) is gone
