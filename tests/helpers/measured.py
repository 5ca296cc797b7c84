"""What is measured and kept in a file, against what there is."""

import warnings


def warn_unmeasured(known, kept, remedy):
    "What is measured for nothing that exists is an error; what exists and is not measured yet, a warning."
    assert set(kept) <= set(known), f"measured, but gone: {sorted(set(kept) - set(known))}"
    if new := sorted(set(known) - set(kept)):
        warnings.warn(f"not measured yet: {', '.join(new)}; {remedy}", stacklevel=2)
