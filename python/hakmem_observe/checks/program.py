"""Can a program be served? What its file says, without starting it."""

from __future__ import annotations

import os
import re
import shutil
import stat
from collections.abc import Iterator
from pathlib import Path

from hakmem_cli.say import CannotError
from hakmem_observe.checks import allocators, elf
from hakmem_observe.checks.finding import Finding, ok, problem, warning

_ELF = b"\x7fELF"
_MOST_INTERPRETERS = 4
_SANDBOXES = ("bwrap", "firejail", "flatpak", "snap", "docker", "podman", "nerdctl", "lxc", "systemd-nspawn", "chroot")
_LINK = 'link it with libhakmem.a: docs/using.md, "Link it"'
_REBUILD = "build it without that allocator, so that it calls malloc"


def find(name: str) -> Path:
    """As the shell would."""
    found = shutil.which(name)
    if found is None:
        what = "not executable" if os.path.exists(name) and "/" in name else "no such program"
        raise CannotError(f"{name}: {what}; legal is a program that can be executed")
    return Path(found)


def _interpreter(first: bytes, path: Path) -> str:
    """Of a script, by its first line."""
    if not first.startswith(b"#!"):
        if b"\0" in first:
            raise CannotError(f"{path}: neither an ELF file nor a script")
        return "/bin/sh"
    # Only these two part words: a carriage return, as Windows ends lines, is part of the name.
    line = first[2:].split(b"\n")[0].decode(errors="replace")
    words = [word for word in re.split("[ \t]", line) if word]
    if words and words[0].endswith("/env"):
        words = [word for word in words[1:] if not word.startswith("-") and "=" not in word]
    if not words:
        raise CannotError(f"{path}: a script whose first line names no interpreter")
    return words[0]


def check(path: Path, library: Path) -> list[Finding]:
    findings: list[Finding] = []
    for _ in range(_MOST_INTERPRETERS):
        findings += _check_rights(path)
        try:
            with path.open("rb") as file:
                first = file.read(256)
        except OSError as error:
            raise CannotError(f"{path}: {error.strerror}") from error
        if first.startswith(_ELF):
            return findings + check_elf(path, elf.read(path), elf.read(library))
        name = _interpreter(first, path)
        try:
            interpreter = find(name)
        except CannotError as error:
            raise CannotError(f"{path}: its interpreter {name!r}{str(error).removeprefix(name)}") from error
        findings.append(ok(f"{path} is a script; what it runs on is {interpreter}"))
        path = interpreter
    raise CannotError(f"{path}: a script whose interpreter is a script, and so on")


def _check_rights(path: Path) -> Iterator[Finding]:
    told = path.stat()
    advice = f"{_LINK}; or put the library into /etc/ld.so.preload, which serves everything"
    for bit, owner, us, kind in (
        (stat.S_ISUID, told.st_uid, os.getuid(), "set-user-ID"),
        (stat.S_ISGID, told.st_gid, os.getgid(), "set-group-ID"),
    ):
        if told.st_mode & bit and owner != us:
            yield problem(f"{path} is {kind}: the loader ignores LD_PRELOAD there", advice)
        elif told.st_mode & bit:
            yield warning(
                f"{path} is {kind}: the loader ignores LD_PRELOAD, unless its owner starts it, as now", advice
            )
    try:
        os.getxattr(path, "security.capability")
    except OSError:
        return
    if os.getuid() == 0:
        yield warning(
            f"{path} has file capabilities: the loader ignores LD_PRELOAD, unless root starts it, as now", advice
        )
    else:
        yield problem(f"{path} has file capabilities: the loader ignores LD_PRELOAD there", advice)


def check_elf(path: Path, program: elf.Elf, library: elf.Elf) -> list[Finding]:
    """The program's own file; `path` is for the words only."""
    if (program.machine, program.bits) != (library.machine, library.bits):
        theirs, ours = (f"{one.machine}, {one.bits} bits" for one in (program, library))
        return [problem(f"{path} is for {theirs}, the library for {ours}", f"build the library for {program.machine}")]
    if program.has_control:
        return [ok(f"{path} has hakmem inside: it is linked with libhakmem.a")]
    is_go = bool({".go.buildinfo", ".note.go.buildid"} & program.sections)
    if program.interpreter is None:
        why = (
            "a Go program without C: it has a heap of its own"
            if is_go
            else "a static program: nothing is preloaded there"
        )
        return [problem(f"{path} is {why}", "hakmem cannot serve it" if is_go else _LINK)]
    findings = [ok(f"{path} is dynamically linked ({program.interpreter})")]
    findings += _check_libc(program, library)
    if is_go:
        findings.append(warning("a Go program: its own heap serves Go; hakmem only its C parts", "nothing to do"))
    findings += _check_allocators(program)
    findings += _check_known(path, program)
    return findings


def _check_libc(program: elf.Elf, library: elf.Elf) -> Iterator[Finding]:
    for_musl = "ld-musl" in (program.interpreter or "")
    is_musl = not any(name == "libc.so.6" for name in library.needed)
    if for_musl != is_musl:
        names = {True: "musl", False: "glibc"}
        yield problem(
            f"it runs on {names[for_musl]}, the library is for {names[is_musl]}",
            f"build the library with {names[for_musl]}",
        )


def _check_allocators(program: elf.Elf) -> Iterator[Finding]:
    if "malloc" in program.defined:
        yield problem("it defines malloc itself, which comes before any preloaded library", _REBUILD)
    inside: dict[str, list[str]] = {}
    called: dict[str, list[str]] = {}
    for names, found in ((program.defined, inside), (program.undefined, called)):
        for name in sorted(names):
            allocator = allocators.of_function(name)
            if allocator is not None:
                found.setdefault(allocator, []).append(name)
    for allocator, names_of in inside.items():
        yield problem(f"it has {allocator} inside ({', '.join(names_of[:3])}), and calls that", _REBUILD)
    for allocator, names_of in called.items():
        if allocator not in inside:
            yield problem(f"it calls {allocator} by names of its own ({', '.join(names_of[:3])})", _REBUILD)
    for library in program.needed:
        allocator = allocators.of_library(library)
        if allocator is not None and allocator not in called:
            yield ok(f"it is linked with {library}, but calls malloc by that name: the preloaded library comes first")


def _check_known(path: Path, program: elf.Elf) -> Iterator[Finding]:
    name = path.resolve().name
    if name.startswith("python") or any(library.startswith("libpython") for library in program.needed):
        yield ok(
            "Python serves objects up to 512 bytes from arenas of its own; the rest comes to hakmem",
            "PYTHONMALLOC=malloc sends all to hakmem",
        )
    if name == "java" or "libjli.so" in program.needed:
        yield ok("Java's objects live in a heap of its own; hakmem serves the virtual machine and native code")
    if path.name in _SANDBOXES or "/snap/" in str(path) or name == "snap":
        yield warning(
            f"{path.name} starts programs in a sandbox, where the library's file may not be",
            'set LD_PRELOAD inside: docs/using.md, "In a shell, a unit, a container"',
        )
