"""What the tests need from the distribution."""

from __future__ import annotations

import glob
import platform
import shutil

from hakmem_cli import apt, ports
from hakmem_cli.say import CannotError, say

# Debian's names, and for each a program or a file that proves it is there, as a pattern.
_LIBRARIES = f"/usr/lib/{platform.machine()}-linux-gnu"
_PACKAGES = {
    "gcc": "gcc",
    "g++": "g++",
    "make": "make",
    "cmake": "cmake",
    "ninja-build": "ninja",
    "clang": "clang",
    "libclang-rt-dev": f"/usr/lib/llvm-*/lib/clang/*/lib/linux/libclang_rt.fuzzer-{platform.machine()}.a",
    "binutils": "objdump",
    "git": "git",
    "valgrind": "valgrind",
    "patch": "patch",
    "pkg-config": "pkg-config",
    "libcmocka-dev": "/usr/include/cmocka.h",
    "libjemalloc2": f"{_LIBRARIES}/libjemalloc.so.2",
    "libtcmalloc-minimal4": f"{_LIBRARIES}/libtcmalloc_minimal.so.4",
}
# Without one of these a test is skipped, and says so.
_OPTIONAL = {
    "clang-tidy": "clang-tidy",
    "cppcheck": "cppcheck",
    "chromium": "chromium",
    "bpftrace": "bpftrace",
    "python3": "/usr/bin/python3",  # Debian's own, whatever runs us
}


def _is_there(proof: str) -> bool:
    return bool(glob.glob(proof)) if proof.startswith("/") else shutil.which(proof) is not None


def _install(missing: list[str]) -> None:
    """If this is Debian and we may; otherwise says what to install."""
    if not missing:
        return
    command = "apt-get install -y " + " ".join(missing)
    if not apt.may_install():
        raise CannotError(f"the tests need packages that are not installed: {command}")
    say(f"installing what the tests need: {command}")
    reason = apt.install(missing)
    if reason is not None:
        raise CannotError(reason)


def ensure(more: list[str]) -> None:
    """Of our own needs and of `more`, what is missing is installed."""
    needed = {**_PACKAGES, **ports.PACKAGES, **(_OPTIONAL if apt.may_install() else {})}
    missing = [package for package, proof in needed.items() if not _is_there(proof)]
    if shutil.which("dpkg-query") is not None:
        missing += [package for package in more if not apt.is_installed(package)]
    _install(missing)


def _ensure(*names: str) -> None:
    _install([name for name in names if not _is_there(_PACKAGES[name])])


def ensure_cmocka() -> None:
    """Without it the tests cannot be configured."""
    _ensure("libcmocka-dev")


_FUZZING = ("cmake", "make", "clang", "libclang-rt-dev", "libcmocka-dev")


def can_fuzz() -> bool:
    return all(_is_there(_PACKAGES[name]) for name in _FUZZING)


def ensure_fuzzing() -> None:
    _ensure(*_FUZZING)
