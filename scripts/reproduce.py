"""reproduce.py PROFILE JOBS [--again]: run the pages of a profile that are due, then its report.

PROFILE-50 is PROFILE with 50 texts of each data set. Nothing is run where something needed is not to be
had. Several pages run at the same time, each in a process of its own. The report is written where a page
failed too, and marks the gap. A profile that repeats a paper ends with every printed number that it
touches: expected, got, and which deviation.
"""

import signal
import sys

from uetrust.__main__ import end_at_once


def main(profile, jobs, *again):
    from uetrust.cli.cli import main as run_command
    from uetrust.cli.notebooks import due_jobs  # Here, so that Ctrl-C shows no traceback meanwhile
    from uetrust.cli.reproduce import report_profile, run_profile, warm_context
    from uetrust.core.settings import out_dir
    from uetrust.papers.deviations.register import preset_of_profile

    if due_jobs(profile, bool(again)):
        warm_context()
        if code := run_command(["plan", profile, "--check"]):
            return code
    signal.signal(signal.SIGINT, signal.default_int_handler)
    failed = run_profile(profile, int(jobs), bool(again))
    code = report_profile(profile)
    if preset_of_profile(profile):
        run_command(["expected", profile, "--out", str(out_dir(profile) / "tables" / "expected.csv")])
    if failed:
        print(f"{len(failed)} pages are not there: {' '.join(failed)}", file=sys.stderr)
    return 1 if failed else code


if __name__ == "__main__":  # The processes that it starts import this file
    signal.signal(signal.SIGINT, end_at_once)  # Some libraries lose a KeyboardInterrupt while they load
    try:
        sys.exit(main(*sys.argv[1:]))
    except KeyboardInterrupt:
        print("stopped; the same command goes on", file=sys.stderr)
        sys.exit(130)
    except Exception as error:
        from uetrust.core.checks import error_line, printable

        print(f"uetrust: error: {printable(error_line(error))}", file=sys.stderr)
        sys.exit(2)
