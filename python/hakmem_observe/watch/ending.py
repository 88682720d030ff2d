"""How the applications end when they are asked to from outside."""

from __future__ import annotations

import asyncio
import signal
from functools import partial
from typing import Any

from textual.app import App


def by_signal(app: App[Any]) -> None:
    """Whom SIGTERM ends at once leaves a terminal that nobody can use. The exit code is a shell's for such an end."""
    leave = partial(app.exit, return_code=128 + signal.SIGTERM)
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, leave)
