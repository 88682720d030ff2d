"""Other machines and C libraries than this one's: what their tests need, from the distribution, installed or unpacked
under build/."""

from __future__ import annotations

import os
import platform
import shlex
import shutil
import subprocess
import tarfile
from collections.abc import Callable
from pathlib import Path

from hakmem_cli import build
from hakmem_cli.say import CannotError, say

# Debian's names, and for each a program or a file that proves it is there; see packages.py.
_PACKAGES = {
    "gcc-aarch64-linux-gnu": "aarch64-linux-gnu-gcc",
    "g++-aarch64-linux-gnu": "aarch64-linux-gnu-g++",
    "libc6-dev-arm64-cross": "/usr/aarch64-linux-gnu/lib/libc.a",
    "qemu-user-static": "qemu-aarch64-static",
    "musl-tools": "musl-gcc",
}

_KEYRING = "/usr/share/keyrings/debian-archive-keyring.gpg"

# From another machine than x86-64 nothing is cross-compiled.
_HERE = platform.machine() == "x86_64"
PRESETS = ("aarch64", "musl") if _HERE else ()
PACKAGES = _PACKAGES if _HERE else {}


def _run(*command: str | Path, cwd: Path) -> None:
    done = subprocess.run(command, cwd=cwd, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        reason = (done.stderr or done.stdout).strip().rpartition("\n")[2]
        raise CannotError(f"{' '.join(map(str, command))} failed: {reason}")


def _apt(directory: Path, *request: str, options: tuple[str, ...]) -> None:
    """Runs apt-get on lists of its own; the system's stay as they are."""
    for name in ("lists/partial", "archives/partial"):
        (directory / name).mkdir(parents=True, exist_ok=True)
    own = (
        f"Dir::State::lists={directory}/lists",
        f"Dir::Cache={directory}",
        "APT::Sandbox::User=root",  # others could not read our directory
    )
    command = ["apt-get", "-qq", *(word for option in (*own, *options) for word in ("-o", option))]
    _run(*command, "update", cwd=directory)
    _run(*command, *request, cwd=directory)


def _fetch_for_aarch64(root: Path, work: Path) -> None:
    """Debian's packages for arm64."""
    options = ("APT::Architecture=arm64", "APT::Architectures=arm64", "Dir::State::status=/dev/null")
    _apt(work, "download", "libcmocka0", "libcmocka-dev", options=options)
    for package in work.glob("*.deb"):
        _run("dpkg-deb", "--extract", package, root, cwd=work)


def _codename(description: Path) -> str:
    """The distribution's release, from its os-release; the standard library reads it from Python 3.10 on only."""
    words = shlex.split(description.read_text(), comments=True)
    return dict(word.partition("=")[::2] for word in words)["VERSION_CODENAME"]


def _build_for_musl(root: Path, work: Path) -> None:
    """Debian's sources: it has no packages for musl."""
    release = _codename(Path("/etc/os-release"))
    sources = work / "sources.list"
    sources.write_text(f"deb-src [signed-by={_KEYRING}] http://deb.debian.org/debian {release} main\n")
    options = (f"Dir::Etc::sourcelist={sources}", "Dir::Etc::sourceparts=/dev/null")
    _apt(work, "source", "--download-only", "cmocka", options=options)
    with tarfile.open(next(work.glob("cmocka_*.orig.tar.*[!c]"))) as archive:
        archive.extractall(work)
    source, target = next(work.glob("cmocka-*")), work / "build"
    settings = ("-DCMAKE_C_COMPILER=musl-gcc", "-DWITH_EXAMPLES=OFF", f"-DCMAKE_INSTALL_PREFIX={root}/usr")
    _run("cmake", "-S", source, "-B", target, *settings, cwd=work)
    _run("cmake", "--build", target, cwd=work)
    _run("cmake", "--install", target, cwd=work)


def _ensure(name: str, make: Callable[[Path, Path], None]) -> None:
    """Makes the directory that cmake/PRESET.cmake searches for libraries besides the C library."""
    root = build.BUILD / f"{name}-root"
    if root.exists():
        return
    say(f"fetching cmocka for {name}")
    work = build.BUILD / f"{name}-work-{os.getpid()}"
    unfinished = work / "root"
    unfinished.mkdir(parents=True)
    try:
        make(unfinished, work)
        unfinished.rename(root)
    finally:
        shutil.rmtree(work, ignore_errors=True)


def ensure_libraries() -> None:
    """The libraries that the tests of these presets are linked with."""
    if PRESETS:
        _ensure("aarch64", _fetch_for_aarch64)
        _ensure("musl", _build_for_musl)
