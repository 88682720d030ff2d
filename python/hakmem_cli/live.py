"""Where processes share live pages (`run --live`), by their numbers."""

from __future__ import annotations

import os
from pathlib import Path

_FIRST_NAMESPACE = 0xEFFFFFFC
"""The inode that the kernel gives the first namespace of process numbers."""


def _mark() -> str:
    """Containers may share the directory with the machine or with each other, and have numbers of their own."""
    try:
        namespace = os.stat("/proc/self/ns/pid").st_ino
    except OSError:
        return ""
    return "" if namespace == _FIRST_NAMESPACE else f"-{namespace}"


def of_session(runtime: str) -> Path:
    """`runtime`: XDG_RUNTIME_DIR."""
    return Path(runtime, f"hakmem{_mark()}")


def of_user(uid: int) -> Path:
    return Path("/dev/shm", f"hakmem-{uid}{_mark()}")
