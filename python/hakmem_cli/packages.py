"""What the tests need from the distribution."""

from __future__ import annotations

import os
import platform
import shutil
import subprocess
from pathlib import Path

from hakmem_cli import ports
from hakmem_cli.say import CannotError, say

# Debian's names, and for each a program or a file that proves it is there.
_LIBRARIES = f"/usr/lib/{platform.machine()}-linux-gnu"
_PACKAGES = {
    "gcc": "gcc",
    "g++": "g++",
    "make": "make",
    "cmake": "cmake",
    "ninja-build": "ninja",
    "clang": "clang",
    "binutils": "objdump",
    "git": "git",
    "pkg-config": "pkg-config",
    "libcmocka-dev": "/usr/include/cmocka.h",
    "libjemalloc2": f"{_LIBRARIES}/libjemalloc.so.2",
    "libtcmalloc-minimal4": f"{_LIBRARIES}/libtcmalloc_minimal.so.4",
}


def _is_there(proof: str) -> bool:
    return Path(proof).exists() if proof.startswith("/") else shutil.which(proof) is not None


def is_installed(package: str) -> bool:
    """As the package manager sees it."""
    done = subprocess.run(
        ["dpkg-query", "--show", "--showformat=${db:Status-Status}", package],
        capture_output=True,
        text=True,
        check=False,
    )
    return done.stdout == "installed"


def may_install() -> bool:
    return os.geteuid() == 0 and shutil.which("apt-get") is not None


def install(names: list[str]) -> str | None:
    """Installs Debian packages; the reason if that fails."""
    if not may_install():
        return "only root may install it"
    environment = dict(os.environ, DEBIAN_FRONTEND="noninteractive")
    # Services that a package would start are none of a test's business.
    environment["RUNLEVEL"] = "1"
    wait = "DPkg::Lock::Timeout=600"
    for step in (
        ["apt-get", "update", "-qq", "-o", wait],
        ["apt-get", "install", "-y", "-qq", "--no-install-recommends", "-o", wait, *names],
    ):
        done = subprocess.run(
            step, env=environment, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False
        )
        if done.returncode != 0:
            reason = (done.stderr or done.stdout).strip().rpartition("\n")[2]
            return f"{' '.join(step)} failed: {reason}"
    return None


def ensure(more: list[str]) -> None:
    """Installs what is missing of our own needs and of `more`, if this is Debian and we may; otherwise says what to
    install."""
    needed = {**_PACKAGES, **ports.PACKAGES}
    missing = [package for package, proof in needed.items() if not _is_there(proof)]
    if shutil.which("dpkg-query") is not None:
        missing += [package for package in more if not is_installed(package)]
    if not missing:
        return
    command = "apt-get install -y " + " ".join(missing)
    if not may_install():
        raise CannotError(f"the tests need packages that are not installed: {command}")
    say(f"installing what the tests need: {command}")
    reason = install(missing)
    if reason is not None:
        raise CannotError(reason)
