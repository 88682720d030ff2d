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
    "redis-server": "redis-server",
    "redis-tools": "redis-benchmark",
    "libcmocka-dev": "/usr/include/cmocka.h",
    "libjemalloc2": f"{_LIBRARIES}/libjemalloc.so.2",
    "libtcmalloc-minimal4": f"{_LIBRARIES}/libtcmalloc_minimal.so.4",
}


def _python_tests() -> dict[str, str]:
    """CPython's own test modules, for the system's interpreter, in the same form."""
    name = Path("/usr/bin/python3").resolve().name
    return {f"lib{name}-testsuite": f"/usr/lib/{name}/test/test_json"}


def _is_there(proof: str) -> bool:
    return Path(proof).exists() if proof.startswith("/") else shutil.which(proof) is not None


def _install(packages: list[str]) -> None:
    environment = dict(os.environ, DEBIAN_FRONTEND="noninteractive")
    for step in (
        ["apt-get", "update", "-qq"],
        ["apt-get", "install", "-y", "-qq", "--no-install-recommends", *packages],
    ):
        done = subprocess.run(
            step, env=environment, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False
        )
        if done.returncode != 0:
            reason = (done.stderr or done.stdout).strip().rpartition("\n")[2]
            raise CannotError(f"{' '.join(step)} failed: {reason}")


def ensure() -> None:
    """Installs what is missing, if this is Debian and we may; otherwise says what to install."""
    needed = {**_PACKAGES, **ports.PACKAGES, **_python_tests()}
    missing = [package for package, proof in needed.items() if not _is_there(proof)]
    if not missing:
        return
    command = "apt-get install -y " + " ".join(missing)
    if os.geteuid() != 0 or shutil.which("apt-get") is None:
        raise CannotError(f"the tests need packages that are not installed: {command}")
    say(f"installing what the tests need: {command}")
    _install(missing)
