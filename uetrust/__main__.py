"""Command `uetrust`: it says its version at once, and loads the rest for everything else."""

import sys

from uetrust import __version__


def main():
    "Exit code of the command line."
    if sys.argv[1:] == ["--version"]:
        print(f"uetrust {__version__}")
        return 0
    from uetrust.app.cli import main as run

    return run()


if __name__ == "__main__":
    sys.exit(main())
