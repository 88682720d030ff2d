"""Building the library, when it is missing or older than its sources."""

import fcntl
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from hakmem_cli.say import CannotError, say

ROOT = Path(__file__).resolve().parents[2]
BUILD = ROOT / "build"
LIBRARY = BUILD / "release" / "libhakmem.so"

_SOURCES = ("src", "include", "cmake", "CMakeLists.txt", "CMakePresets.json")


def _newest_source() -> float:
    newest = 0.0
    for name in _SOURCES:
        path = ROOT / name
        for file in path.rglob("*") if path.is_dir() else [path]:
            newest = max(newest, file.stat().st_mtime)
    return newest


def is_current() -> bool:
    return LIBRARY.exists() and LIBRARY.stat().st_mtime >= _newest_source()


def _need(program: str, package: str) -> None:
    if shutil.which(program) is None:
        raise CannotError(f"{program} not found; install it, for example: apt-get install {package}")


def check_tools() -> None:
    """One clear line for the first tool that is missing."""
    _need("cmake", "cmake")
    if not any(shutil.which(name) for name in (os.environ.get("CC", "cc"), "cc", "gcc", "clang")):
        raise CannotError("no C compiler found (cc, gcc or clang); install one, for example: apt-get install gcc g++")
    if not any(shutil.which(name) for name in (os.environ.get("CXX", "c++"), "c++", "g++", "clang++")):
        raise CannotError("no C++ compiler found (c++, g++ or clang++); install one, for example: apt-get install g++")
    if shutil.which("ninja") is None:
        _need("make", "make")


@contextmanager
def _lock() -> Iterator[None]:
    """One build at a time; others wait for it."""
    BUILD.mkdir(exist_ok=True)
    with (BUILD / ".lock").open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def _run(command: list[str], what: str) -> None:
    """Runs a build step with its progress on one line of stderr; the whole output only if it fails."""
    live = sys.stderr.isatty()
    output: list[str] = []
    # The tools must not be served by a library that is about to be replaced.
    environment = {name: value for name, value in os.environ.items() if name != "LD_PRELOAD"}
    with subprocess.Popen(command, cwd=ROOT, env=environment, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, text=True) as process:
        assert process.stdout is not None
        for line in process.stdout:
            output.append(line)
            if live and re.match(r"\[ *\d+", line):
                print(f"\r\033[Khakmem: {what}: {line.strip()[:90]}", end="", file=sys.stderr, flush=True)
    if live:
        print("\r\033[K", end="", file=sys.stderr, flush=True)
    if process.returncode != 0:
        sys.stderr.writelines(output)
        raise CannotError(f"{what} failed (the output is above): {' '.join(command)}")


def build(preset: str, *, tests: bool, targets: tuple[str, ...] = ()) -> None:
    check_tools()
    with _lock():
        generator = ["-G", "Ninja"] if shutil.which("ninja") else ["-G", "Unix Makefiles"]
        if (BUILD / preset / "CMakeCache.txt").exists():
            generator = []
        configure = ["cmake", "--preset", preset, *generator, f"-DHAK_TESTS={'ON' if tests else 'OFF'}"]
        _run(configure, f"configuring {preset}")
        command = ["cmake", "--build", str(BUILD / preset), "--parallel", str(os.cpu_count() or 1)]
        if targets:
            command += ["--target", *targets]
        _run(command, f"building {preset}")


def ensure_library() -> Path:
    """The path of an up-to-date release library."""
    if not is_current():
        say("building the release library" + ("" if LIBRARY.exists() else " (first run, about half a minute)"))
        build("release", tests=False, targets=("hakmem",))
        if LIBRARY.exists():
            os.utime(LIBRARY)  # a change that changed nothing in the binary is dealt with too
    if not LIBRARY.exists():
        raise CannotError(f"the build left no {LIBRARY}")
    return LIBRARY.resolve()
