"""Programs in a session of their own, which end with all that they have started."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess


def end(process: subprocess.Popen[bytes]) -> None:
    """Of a process that was started with start_new_session: kills what is left of its session, and waits for it."""
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()
