"""What the tests need from the distribution."""

import os
import shutil
import subprocess
from pathlib import Path

from hakmem_cli.say import CannotError, say

# Debian's names, and for each a program or a file that proves it is there.
_PACKAGES = {
    "gcc": "gcc",
    "g++": "g++",
    "make": "make",
    "cmake": "cmake",
    "ninja-build": "ninja",
    "clang": "clang",
    "binutils": "objdump",
    "git": "git",
    "redis-server": "redis-server",
    "redis-tools": "redis-benchmark",
    "libcmocka-dev": "/usr/include/cmocka.h",
    "libpython3.11-testsuite": "/usr/lib/python3.11/test/test_json",
}


def _is_there(proof: str) -> bool:
    return Path(proof).exists() if proof.startswith("/") else shutil.which(proof) is not None


def ensure() -> None:
    """Installs what is missing, if this is Debian and we may; otherwise says what to install."""
    missing = [package for package, proof in _PACKAGES.items() if not _is_there(proof)]
    if not missing:
        return
    command = "apt-get install -y " + " ".join(missing)
    if os.geteuid() != 0 or shutil.which("apt-get") is None:
        raise CannotError(f"the tests need packages that are not installed: {command}")
    say(f"installing what the tests need: {command}")
    environment = dict(os.environ, DEBIAN_FRONTEND="noninteractive")
    for step in (["apt-get", "update", "-qq"], ["apt-get", "install", "-y", "-qq", *missing]):
        done = subprocess.run(step, env=environment, stdin=subprocess.DEVNULL, capture_output=True, text=True)
        if done.returncode != 0:
            raise CannotError(f"{' '.join(step)} failed: {(done.stderr or done.stdout).strip().splitlines()[-1:]}")
