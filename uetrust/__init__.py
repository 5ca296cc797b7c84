"""Can the number that says "this text may be wrong" be trusted, and can the way we test it?

The names below are the public interface; ``help(uetrust.prr)`` explains one of them. Everything else is
private by convention and may change. The notebooks in ``nbs`` explain, and export, every module.
"""

__version__ = "0.1.0"

from uetrust.cli.public import load_public, public_names

__all__ = sorted(public_names())  # noqa: PLE0605


def __getattr__(name):
    globals()[name] = load_public(name)
    return globals()[name]


def __dir__():
    return [*__all__, "__version__"]
