"""Profiles in files: any form is read, known by its content; each form is written."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterable
from pathlib import Path

from hakmem_cli.say import CannotError
from hakmem_observe import collapsed, heap_profile, pprof, symbols
from hakmem_observe.heap_profile import NotAProfileError
from hakmem_observe.stacks import Profile

FORMATS = {"pprof": ".pb.gz", "collapsed": ".collapsed", "heap_v2": ".heap"}
"""And how their names end."""
_LARGEST = 1 << 30


def is_profile(data: bytes) -> bool:
    """Or at least means to be one."""
    return data.startswith((pprof.MAGIC, b"heap profile:"))


def read(path: Path) -> Profile:
    return decode(read_bytes(path), str(path))


def read_bytes(path: Path) -> bytes:
    """Of a file or a pipe."""
    try:
        with path.open("rb") as file:
            found = os.fstat(file.fileno())
            if not stat.S_ISREG(found.st_mode) and not stat.S_ISFIFO(found.st_mode):
                raise CannotError(f"{path}: neither a file nor a pipe")
            data = file.read(_LARGEST + 1) if found.st_size <= _LARGEST else b""
    except OSError as error:
        raise CannotError(f"{path}: {error.strerror}") from error
    if max(found.st_size, len(data)) > _LARGEST:
        raise CannotError(f"{path}: larger than 1 GiB; legal are profiles and statistics of hakmem")
    return data


def decode(data: bytes, name: str, roots: Iterable[Path] = (Path("/"),), running: Path | None = None) -> Profile:
    """`roots`: where the process's programs and libraries are. `running`: its program, if that can be read there."""
    try:
        if data.startswith(pprof.MAGIC):
            return pprof.decode(data)
        return symbols.resolve(heap_profile.parse(data.decode(errors="surrogateescape")), roots, running)
    except NotAProfileError as error:
        raise CannotError(f"{name}: {error}") from error


def encode(data: bytes, profile: Profile, form: str, what: str) -> bytes:
    """`data`: what the profile was read from."""
    if form == "pprof":
        try:
            return pprof.encode(profile)
        except NotAProfileError as error:
            raise CannotError(f"process {profile.pid}'s profile: {error}") from error
    if form == "collapsed":
        return collapsed.encode(profile, what).encode()
    if data.startswith(pprof.MAGIC):
        raise CannotError("a .pb.gz file cannot be turned back into heap_v2; legal are pprof, collapsed")
    return data
