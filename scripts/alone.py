"""alone.py LOCK COMMAND...: run a command while no other holds the lock; wait for it, and say so."""

import fcntl
import os
import sys

lock, *command = sys.argv[1:]
os.makedirs(os.path.dirname(lock), exist_ok=True)
fd = os.open(lock, os.O_RDWR | os.O_CREAT, 0o644)
os.set_inheritable(fd, True)  # Whatever the command starts holds the lock too, and may outlive it
try:
    fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
except BlockingIOError:
    print(f"another run holds {lock}; this one goes on when it has ended", flush=True)
    try:
        fcntl.flock(fd, fcntl.LOCK_EX)
    except KeyboardInterrupt:
        sys.exit(130)
os.execvp(command[0], command)
