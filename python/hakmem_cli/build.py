"""Building with CMake: the release library when it is missing or older than its sources, and all presets for tests."""

from __future__ import annotations

import fcntl
import hashlib
import os
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

from hakmem_cli import apt
from hakmem_cli.say import CannotError, say

ROOT = Path(__file__).resolve().parents[2]
BUILD = ROOT / "build"
LIBRARY = BUILD / "release" / "libhakmem.so"
HARDENED = BUILD / "release" / "libhakmem-hardened.so"

_SOURCES = ("src", "include", "cmake", "CMakeLists.txt", "CMakePresets.json")
# The CMake target of each.
_TARGETS = {LIBRARY: "hakmem", HARDENED: "hakmem_hardened"}

# What is needed, the programs any of which will do, Debian's package.
_TOOLS = (
    ("cmake", ("cmake",), "cmake"),
    ("a C compiler", (os.environ.get("CC", "cc"), "cc", "gcc", "clang"), "gcc"),
    ("a C++ compiler", (os.environ.get("CXX", "c++"), "c++", "g++", "clang++"), "g++"),
    ("make or ninja", ("make", "ninja"), "make"),
)


def _newest_source() -> float:
    """When the sources changed last; directories count, because their times tell of removed files."""
    newest = 0.0
    for name in _SOURCES:
        for path in (ROOT / name, *(ROOT / name).rglob("*")):
            try:
                newest = max(newest, path.stat().st_mtime)
            except FileNotFoundError:
                continue  # an editor's temporary file
    return newest


def digest_of(paths: Iterable[Path]) -> str:
    """Of the files among them, with their names in this tree."""
    digest = hashlib.sha256()
    for path in paths:
        if path.is_file():
            digest.update(f"{path.relative_to(ROOT)}\0".encode() + path.read_bytes())
    return digest.hexdigest()[:16]


def sources_digest() -> str:
    """What the library is made from, whatever the commit."""
    return digest_of(path for name in _SOURCES for path in sorted((ROOT / name, *(ROOT / name).rglob("*"))))


def _stamp(library: Path) -> Path:
    """Its time is that of the last successful build's start. The library's own will not do: it stays as it was when a
    change of the sources changes nothing in it."""
    return library.with_suffix(".built")


def is_current(library: Path = LIBRARY) -> bool:
    stamp = _stamp(library)
    return library.exists() and stamp.exists() and stamp.stat().st_mtime >= _newest_source()


def ensure_tools() -> None:
    """Installs what is missing, if this is Debian and we may; otherwise one clear line."""
    missing = [(what, package) for what, names, package in _TOOLS if not any(map(shutil.which, names))]
    if not missing:
        return
    what = " and ".join(what for what, _ in missing)
    packages = [package for _, package in missing]
    if not apt.may_install():
        it = "it" if len(missing) == 1 else "them"
        raise CannotError(f"{what} not found; install {it}, for example: apt-get install {' '.join(packages)}")
    say(f"{what} not found; installing: apt-get install {' '.join(packages)}")
    reason = apt.install(packages)
    if reason is not None:
        raise CannotError(reason)


@contextmanager
def _lock() -> Iterator[None]:
    """One build at a time; others wait for it."""
    try:
        BUILD.mkdir(exist_ok=True)
        file = (BUILD / ".lock").open("w")
    except OSError as error:
        raise CannotError(f"cannot build in {BUILD}: {error.strerror}") from error
    with file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            say("waiting for another build to finish")
            fcntl.flock(file, fcntl.LOCK_EX)
        yield


def _percent(line: str) -> int | None:
    """How far a line of ninja's, [3/40], or make's, [ 45%], says the build is."""
    found = re.match(r"\[ *(\d+)(?:/(\d+)|%)\]", line)
    return int(found[1]) * 100 // int(found[2] or 100) if found else None


def _run(command: list[str], what: str, root: Path = ROOT) -> None:
    """Runs a build step with its progress on stderr; what else the tools said only if it fails."""
    live = sys.stderr.isatty()
    output: list[str] = []
    shown = 0
    # The tools must not be served by a library that is about to be replaced.
    environment = {name: value for name, value in os.environ.items() if name != "LD_PRELOAD"}
    with subprocess.Popen(
        command,
        cwd=root,
        env=environment,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
    ) as process:
        assert process.stdout is not None
        for line in process.stdout:
            percent = _percent(line)
            if percent is None:
                output.append(line)
            elif live:
                print(f"\r\033[Khakmem: {what}: {percent} %", end="", file=sys.stderr, flush=True)
            elif percent >= shown + 25:
                shown = percent
                say(f"{what}: {percent} %")
    if live:
        print("\r\033[K", end="", file=sys.stderr, flush=True)
    if process.returncode != 0:
        sys.stderr.writelines(output)
        raise CannotError(f"{what} failed (the output is above): {' '.join(command)}")


def _is_usable(cache: Path) -> bool:
    """False where CMake would refuse: the repository has been moved or copied, or a tool is gone."""
    entries = dict(re.findall(r"^(\w+):\w+=(.*)$", cache.read_text(), re.MULTILINE))
    tools = ("CMAKE_C_COMPILER", "CMAKE_CXX_COMPILER", "CMAKE_MAKE_PROGRAM")
    return entries.get("CMAKE_HOME_DIRECTORY") == str(cache.parents[2]) and all(
        Path(entries.get(tool, "")).exists() for tool in tools
    )


def _generator(directory: Path) -> list[str]:
    """CMake's argument for a new build directory; an old one keeps what it has."""
    cache = directory / "CMakeCache.txt"
    if cache.exists():
        if _is_usable(cache):
            return []
        shutil.rmtree(directory)
    return ["-G", "Ninja" if shutil.which("ninja") else "Unix Makefiles"]


def _build(preset: str, *, tests: bool, targets: tuple[str, ...] = (), root: Path = ROOT) -> None:
    started = time.time()
    directory = root / "build" / preset
    # Without tests the option keeps its value: tests that are set up stay so.
    configure = ["cmake", "--preset", preset, *_generator(directory), *(["-DHAK_TESTS=ON"] if tests else [])]
    what = preset if root == ROOT else root.name
    _run(configure, f"configuring {what}", root)
    command = ["cmake", "--build", str(directory), "--parallel", str(len(os.sched_getaffinity(0)))]
    if targets:
        command += ["--target", *targets]
    _run(command, f"building {what}", root)
    for library, target in _TARGETS.items():
        if directory == library.parent and (not targets or target in targets):
            _stamp(library).touch()
            os.utime(_stamp(library), (started, started))


def build_tests(preset: str) -> None:
    """Everything of that preset, the tests too."""
    with _lock():
        _build(preset, tests=True)


def ensure_library(library: Path = LIBRARY) -> Path:
    """The path of an up-to-date release library: LIBRARY or HARDENED."""
    if not is_current(library):
        ensure_tools()
        with _lock():
            if not is_current(library):
                what = "release" if library == LIBRARY else "hardened"
                say(f"building the {what} library" + ("" if library.exists() else " (first run)"))
                _build("release", tests=False, targets=(_TARGETS[library],))
    return library.resolve()


def build_benchmarks() -> None:
    """The lab's own programs, which are served by whatever is preloaded."""
    with _lock():
        _build("release", tests=False, targets=("hakmem", "benchmarks"))


def build_test(target: str) -> None:
    """One test program of the release build, and the library."""
    with _lock():
        _build("release", tests=True, targets=("hakmem", target))


def build_fuzzers() -> None:
    """Those of tests/fuzz, with libFuzzer."""
    with _lock():
        _build("fuzz", tests=True, targets=("fuzzers",))


def build_tree(root: Path) -> Path:
    """The library of another tree than ours, in a build directory of its own there."""
    with _lock():
        _build("release", tests=False, targets=("hakmem",), root=root)
    return root / "build" / "release" / LIBRARY.name
