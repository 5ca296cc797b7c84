"""Command `uetrust`: it says its version at once, and loads the rest for everything else."""

import gc
import os
import signal
import sys

from uetrust import __version__


def end_at_once(number, frame):
    "End of the process while no subcommand is at work: as it begins, and as it ends."
    os.write(2, b"uetrust: stopped; the same command goes on where it can\n")
    os._exit(128 + number)


def main():
    "Exit code of the command line."
    gc.set_threshold(50_000)  # Imports make many objects that stay: looking through them took an eighth of a command
    for number in (signal.SIGINT, signal.SIGTERM):
        if signal.getsignal(number) is not signal.SIG_IGN:  # As a shell has it for jobs in the background
            signal.signal(number, end_at_once)
    if sys.argv[1:] == ["--version"]:
        print(f"uetrust {__version__}")
        return 0
    from uetrust.cli.cli import main as run

    return run()


if __name__ == "__main__":
    sys.exit(main())
