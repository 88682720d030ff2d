"""What clang-tidy, cppcheck and gcc's analyzer find in C and C++ files, as the release build compiles them."""

from __future__ import annotations

import json
import os
import re
import shlex
import subprocess
import tempfile
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from support import RELEASE, ROOT, run

CLANG_TIDY_CHECKS = ROOT / ".clang-tidy"
CPPCHECK_SUPPRESSIONS = ROOT / "tests" / "cppcheck.txt"

# cppcheck does not ask the compiler what it defines: it reads the code of both.
_MACHINES = ("__x86_64__", "__aarch64__")


@dataclass(frozen=True)
class Command:
    """How a file is compiled: the compiler's arguments without the file's name, and without an output."""

    file: Path
    arguments: tuple[str, ...]


@dataclass(frozen=True, order=True)
class Finding:
    file: str
    line: int
    check: str
    text: str

    def __str__(self) -> str:
        return f"{self.file}:{self.line}: {self.check}: {self.text}"


@dataclass(frozen=True)
class Tool:
    program: str
    version: str
    """That of Debian 12, which CI has."""
    findings: Callable[[list[Command]], set[Finding]]


# What is written where the two libraries differ.
_HARDENED = re.compile(r"\bHARDENED\b|\bSEAL|\bhot_")


def library_commands() -> list[Command]:
    """Those of the libraries' own objects; the tests compile some of their files again, with other flags.

    Of the hardened library only files that are not in the other, or differ there."""
    plain, hardened = [], []
    for entry in json.loads((RELEASE / "compile_commands.json").read_text()):
        words = shlex.split(entry["command"])
        output = words.index("-o")
        if words[output + 1].startswith("CMakeFiles/hakmem"):
            source = words.index("-c", output)
            command = Command(Path(entry["file"]), (*words[1:output], *words[source + 2 :]))
            (hardened if "-DHAK_HARDENED=1" in words else plain).append(command)
    files = {command.file for command in plain}
    differing = [one for one in hardened if one.file not in files or _HARDENED.search(one.file.read_text())]
    return plain + differing


def _read(pattern: re.Pattern[str], output: str) -> set[Finding]:
    found = set()
    for one in pattern.finditer(output):
        path = Path(one["file"])
        name = path.relative_to(ROOT) if ROOT in path.parents else path
        found.add(Finding(str(name), int(one["line"]), one["check"], one["text"]))
    return found


def _read_all(pattern: re.Pattern[str], done: subprocess.CompletedProcess[str], what: str) -> set[Finding]:
    """An error if the program failed and said nothing of a file."""
    output = done.stdout + done.stderr
    found = _read(pattern, output)
    if done.returncode != 0 and not found:
        raise AssertionError(f"{what} ended with {done.returncode}:\n{output}")
    return found


def _each(analyse: Callable[[Command], set[Finding]], commands: Iterable[Command]) -> set[Finding]:
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        return set().union(*pool.map(analyse, commands))


_CLANG_LINE = re.compile(
    r"^(?P<file>/[^:]+):(?P<line>\d+):\d+: (?:warning|error): (?P<text>.*) \[(?P<check>[^\]]+)\]$", re.MULTILINE
)


def _clang_tidy(commands: list[Command]) -> set[Finding]:
    def analyse(command: Command) -> set[Finding]:
        tidy = ("clang-tidy", "--quiet", f"--config-file={CLANG_TIDY_CHECKS}", command.file)
        return _read_all(_CLANG_LINE, run(*tidy, "--", *command.arguments), f"clang-tidy {command.file}")

    return _each(analyse, commands)


_GCC_LINE = re.compile(
    r"^(?P<file>/[^:]+):(?P<line>\d+):\d+: (?:warning|error): (?P<text>.*) \[(?P<check>-W[^\]]+)\]$", re.MULTILINE
)


def _gcc(commands: list[Command]) -> set[Finding]:
    """Of the C files: the analyzer does not know C++."""

    def analyse(command: Command) -> set[Finding]:
        analyzer = ("-fanalyzer", "-fdiagnostics-plain-output", "-Wno-error", "-c", "-o", os.devnull, command.file)
        return _read_all(_GCC_LINE, run("gcc", *command.arguments, *analyzer), f"gcc -fanalyzer {command.file}")

    return _each(analyse, (command for command in commands if command.file.suffix == ".c"))


_CPPCHECK_LINE = re.compile(r"^(?P<file>[^:\n]+):(?P<line>\d+): (?P<check>\w+): (?P<text>.*)$", re.MULTILINE)


def _cppcheck(commands: list[Command]) -> set[Finding]:
    """All files at once: it looks across them."""
    entries = [
        {"directory": str(RELEASE), "file": str(one.file), "arguments": ["cc", *one.arguments, "-c", str(one.file)]}
        for one in commands
    ]
    options = ["--quiet", "--enable=warning,style,performance,portability,information", "--library=posix,gnu"]
    options += ["--inline-suppr", f"--suppressions-list={CPPCHECK_SUPPRESSIONS}"]
    options += ["--template={file}:{line}: {id}: {message}", "--error-exitcode=1"]
    with tempfile.TemporaryDirectory() as directory:
        project = Path(directory) / "compile_commands.json"
        project.write_text(json.dumps(entries))

        def analyse(machine: str) -> set[Finding]:
            done = run("cppcheck", f"--project={project}", f"-D{machine}", *options)
            return _read_all(_CPPCHECK_LINE, done, "cppcheck")

        return set().union(*map(analyse, _MACHINES))


CLANG_TIDY = Tool("clang-tidy", "14", _clang_tidy)
CPPCHECK = Tool("cppcheck", "2.10", _cppcheck)
GCC = Tool("gcc", "12", _gcc)
