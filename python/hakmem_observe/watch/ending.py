"""How the applications end when they are asked to from outside."""

from __future__ import annotations

import asyncio
import os
import select
import signal
from functools import partial
from typing import Any

from textual.app import App

_TERMINAL = 0
_LOOK_SECONDS = 1.0


def from_outside(app: App[Any]) -> None:
    """Whom SIGTERM ends at once leaves a terminal that nobody can use; and who ignores SIGHUP would read the end of one
    that is gone for ever. The exit codes are a shell's for such ends."""
    leave = partial(app.exit, return_code=128 + signal.SIGTERM)
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, leave)
    if os.isatty(_TERMINAL):
        app.set_interval(_LOOK_SECONDS, partial(_leave_what_is_gone, app))


def _leave_what_is_gone(app: App[Any]) -> None:
    poll = select.poll()
    poll.register(_TERMINAL, 0)  # of a hang-up and of errors it tells unasked
    if poll.poll(0):
        app.exit(return_code=128 + signal.SIGHUP)
