"""Scores of many items at once, as their batched twins give them."""

import numpy as np

from uetrust.core.registry import reg
from uetrust.core.run import lay_out


def twins_of(module):
    "Scores of a module that have a batched twin."
    return sorted(name for name, entry in reg.items() if entry.batch and entry.fn.__module__ == module)


def at_once(name, items):
    "What the batched twin of a score gives for items of one size; NaN where the score itself must be asked."

    def get(needed):
        if needed in items[0]:
            return [item[needed] for item in items]
        return reg[needed].fn(**{below: get(below) for below in reg[needed].needs})

    entry = reg[name]
    stacked = [lay_out(get(needed), layout) for needed, layout in zip(entry.needs, entry.layouts)]
    with np.errstate(all="ignore"):
        return np.array(entry.batch(*stacked), float)
