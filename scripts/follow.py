"""follow.py PROFILE MAKE...: run make for a profile, and say after each notebook how much is left.

How long each notebook took goes into runs/PROFILE/seconds.csv. What is left is estimated from the times
of data/reproduce_seconds.csv; a notebook that is not there counts like their median.
"""

import csv
import os
import re
import subprocess
import sys
from pathlib import Path
from statistics import median
from time import monotonic

from uetrust.app.notebooks import due_jobs
from uetrust.core.progress import time_left

ENDED = re.compile(r"ok (\S+)\.ipynb|(\S+)\.ipynb ended early|uetrust: error: FAILED (\S+)\.ipynb")


def read_seconds(path):
    if not path.exists():
        return {}
    with open(path, newline="", encoding="utf-8") as file:
        return {row["notebook"]: float(row["seconds"]) for row in csv.DictReader(file)}


def write_seconds(path, seconds):
    rows = sorted(seconds.items(), key=lambda row: -row[1])
    path.write_text(
        "notebook,seconds\n" + "".join(f"{name},{time:.1f}\n" for name, time in rows), encoding="utf-8"
    )


def follow(lines, jobs, expected):  # Seconds of each notebook that ended
    seconds, begun, start = {}, {}, monotonic()
    for line in lines:
        if found := re.match(r"running (\S+)", line):
            begun[found[1]] = monotonic()
        elif found := ENDED.match(line):
            name = Path(next(filter(None, found.groups()))).name
            seconds[name] = monotonic() - begun.get(name, start)
            rest = sum(expected[job] for job in jobs if job not in seconds)
            rate = (monotonic() - start) / sum(expected.get(job, 1) for job in seconds)
            left = time_left(rate * rest)
            line = f"{line.rstrip()} ({len(seconds)} of {len(jobs)} notebooks, about {left} left)\n"
        print(line, end="", flush=True)
    return seconds


profile, *make = sys.argv[1:]
forced = "B" in os.environ.get("MAKEFLAGS", "").split(" ")[0]
subprocess.run([make[0], "--no-print-directory", "-s", "runs/.library"], check=True, close_fds=False)
jobs, known = (
    [job.name for job in due_jobs(profile, forced)],
    read_seconds(Path("data/reproduce_seconds.csv")),
)
usual = median(known.values()) if known else 1
# make hands its children the descriptors that share out the jobs
process = subprocess.Popen(make, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, close_fds=False)
seconds = follow(process.stdout, jobs, {job: known.get(job, usual) for job in jobs})
ran = Path("runs") / profile / "seconds.csv"
if seconds:
    write_seconds(ran, read_seconds(ran) | seconds)
sys.exit(process.wait())
