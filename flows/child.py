"""Become another command, which ends when the process that started it ends: `child.py PARENT COMMAND …`.

Run as a script, without imports of ours: code between fork and exec of a threaded process could deadlock.
Linux only; elsewhere the command simply runs.
"""

import ctypes
import os
import signal
import sys

PR_SET_PDEATHSIG = 1


def main(parent: int, command: list[str]) -> None:
    """Ask for SIGTERM at the parent's end, then become `command`; the request outlives the exec."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGTERM)
        if os.getppid() != parent:
            sys.exit("the process that started this one has already ended")
    os.execv(command[0], command)  # noqa: S606 - a list, no shell


if __name__ == "__main__":
    main(int(sys.argv[1]), sys.argv[2:])
