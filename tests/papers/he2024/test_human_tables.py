"""Sentences about people's labels: what is undefined is counted."""

import numpy as np
import pandas as pd

from uetrust.papers.he2024 import human_tables as people


def test_an_undefined_prr_is_counted_and_no_perfect_method_is_promised():
    ends = pd.DataFrame(dict(no_prr=[0.19, 0.14, 0.12]), ["SOAF", "CO", "TME"])
    deviations = pd.DataFrame(dict(error=["EI"], null_sd=[0.25]))
    index = pd.MultiIndex.from_tuples([("power_sd", "EI"), ("power_sd", "CO")], names=["band", "error"])
    smallest = pd.DataFrame({100: [0.6, np.nan]}, index)
    said = people.undefined_sentence(ends, deviations, smallest)
    assert (
        said.startswith("In 19% of the draws of 100 summaries")
        and "no opinion is stated as fact" in said
        and "; for CO even a perfect method" in said
    )
    every = people.undefined_sentence(ends, deviations, smallest.fillna(0.9))
    assert every.endswith("±0.49 for extrinsic information (EI).")
