"""follow.py PROFILE MAKE...: run make for a profile, and say after each notebook how much is left."""

import os
import re
import subprocess
import sys
from time import monotonic

from uetrust.app.notebooks import due_jobs
from uetrust.core.progress import time_left

profile, *make = sys.argv[1:]
forced = "B" in os.environ.get("MAKEFLAGS", "").split(" ")[0]
subprocess.run([make[0], "--no-print-directory", "-s", "runs/.library"], check=True, close_fds=False)
total, done, start = len(due_jobs(profile, forced)), 0, monotonic()
# make hands its children the descriptors that share out the jobs
lines = subprocess.Popen(make, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, close_fds=False)
for line in lines.stdout:
    if re.match(r"ok \S+\.ipynb|\S+\.ipynb ended early|uetrust: error: FAILED ", line):
        done += 1
        left = (monotonic() - start) / done * max(total - done, 0)
        line = f"{line.rstrip()} ({done} of {total} notebooks, about {time_left(left)} left)\n"
    print(line, end="", flush=True)
sys.exit(lines.wait())
