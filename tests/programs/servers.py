"""A server that runs for as long as a test works with it."""

from __future__ import annotations

import signal
import socket
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from programs import environment

READY_SECONDS = 60
END_SECONDS = 120


def wait_until(ready: Callable[[], bool], process: subprocess.Popen[bytes]) -> None:
    """Asks until the answer is yes, the process has ended, or too much time has passed."""
    deadline = time.monotonic() + READY_SECONDS
    while not ready():
        if process.poll() is not None:
            raise AssertionError(f"{process.args} ended with status {process.returncode}")
        if time.monotonic() > deadline:
            raise AssertionError(f"{process.args} does not answer")
        time.sleep(0.05)


def accepts(address: str | Path | int) -> bool:
    """Does somebody listen at the unix socket, or the local port?"""
    family = socket.AF_INET if isinstance(address, int) else socket.AF_UNIX
    with socket.socket(family, socket.SOCK_STREAM) as client:
        try:
            client.connect(("127.0.0.1", address) if isinstance(address, int) else str(address))
        except OSError:
            return False
    return True


def free_port() -> int:
    """A port of the loopback address that nobody uses now."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@contextmanager
def server(
    command: list[str],
    *,
    preload: bool,
    ready: Callable[[], bool],
    log: Path,
    user: str | None = None,
    stop: signal.Signals = signal.SIGTERM,
) -> Iterator[subprocess.Popen[bytes]]:
    """Starts it, waits until it is ready, and ends it in order; whatever happens, it does not outlive the test."""
    with log.open("ab") as output:
        process = subprocess.Popen(
            command,
            env=environment(preload),
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
            user=user,
            group=user,
            extra_groups=[] if user else None,
        )
        try:
            wait_until(ready, process)
            yield process
            process.send_signal(stop)
            status = process.wait(END_SECONDS)
            if status not in (0, -stop):
                text = log.read_text(errors="replace")
                raise AssertionError(f"{command[0]} ended with status {status}: {text[-2000:]}")
        finally:
            if process.poll() is None:
                process.kill()
                process.wait()
