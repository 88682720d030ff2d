"""Other machines than this one: what their tests need, from the distribution, installed or unpacked under build/."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

from hakmem_cli import build
from hakmem_cli.say import CannotError, say

PRESETS = ("aarch64",)

# Debian's names, and for each a program or a file that proves it is there; see packages.py.
PACKAGES = {
    "gcc-aarch64-linux-gnu": "aarch64-linux-gnu-gcc",
    "g++-aarch64-linux-gnu": "aarch64-linux-gnu-g++",
    "libc6-dev-arm64-cross": "/usr/aarch64-linux-gnu/lib/libc.a",
    "qemu-user-static": "qemu-aarch64-static",
}

# What cmake/aarch64.cmake searches for libraries besides the C library.
_ROOT = build.BUILD / "aarch64-root"
_LIBRARIES = ("libcmocka0", "libcmocka-dev")


def _run(*command: str, cwd: Path) -> None:
    done = subprocess.run(command, cwd=cwd, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        reason = (done.stderr or done.stdout).strip().rpartition("\n")[2]
        raise CannotError(f"{' '.join(command)} failed: {reason}")


def _fetch(root: Path) -> None:
    """Debian's packages for arm64, unpacked into a directory: apt works on lists of its own, the system's stay."""
    apt = root / "apt"
    for directory in ("lists/partial", "archives/partial"):
        (apt / directory).mkdir(parents=True)
    options = [
        "APT::Architecture=arm64",
        "APT::Architectures=arm64",
        "Dir::State::status=/dev/null",
        f"Dir::State::lists={apt}/lists",
        f"Dir::Cache={apt}",
        "APT::Sandbox::User=root",  # others could not read our directory
    ]
    command = ["apt-get", "-qq", *(word for option in options for word in ("-o", option))]
    _run(*command, "update", cwd=apt)
    _run(*command, "download", *_LIBRARIES, cwd=apt)
    for package in apt.glob("*.deb"):
        _run("dpkg-deb", "--extract", str(package), str(root), cwd=apt)
    shutil.rmtree(apt)


def ensure_libraries() -> None:
    """The libraries that the tests of the cross-compiled presets are linked with."""
    if _ROOT.exists():
        return
    say("fetching cmocka for arm64")
    unfinished = _ROOT.with_name(f"{_ROOT.name}-{os.getpid()}")
    try:
        _fetch(unfinished)
        unfinished.rename(_ROOT)
    finally:
        shutil.rmtree(unfinished, ignore_errors=True)
