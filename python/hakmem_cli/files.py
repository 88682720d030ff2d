"""Files that are written whole or not at all."""

from __future__ import annotations

import fcntl
import os
import stat
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from hakmem_cli.say import CannotError

_LOCK_TRIES = 250
_LOCK_WAIT_SECONDS = 0.02


def _told(path: Path) -> os.stat_result | None:
    try:
        return path.lstat()
    except FileNotFoundError:
        return None


def check_target(path: Path, *, force: bool) -> os.stat_result | None:
    """May it be written? To be asked before the work is done. The file that is there, which `force` allows."""
    if path.is_dir() or not path.absolute().parent.is_dir():
        what = "is a directory" if path.is_dir() else "no such directory"
        raise CannotError(f"{path}: {what}; legal is a file that can be written")
    old = _told(path)
    if old is not None and not stat.S_ISREG(old.st_mode):
        raise CannotError(f"{path}: no regular file; legal is one, or a name that is free")
    if old is not None and not force:
        raise CannotError(f"{path}: exists; --force writes over it, --output FILE writes elsewhere")
    return old


def try_lock(file: int) -> bool:
    """False: another descriptor has it. It goes with the last copy of the descriptor."""
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError:  # the file system has none
        pass
    return True


@contextmanager
def alone(path: Path) -> Iterator[None]:
    """Of those that read a file and write it anew, one at a time: by a lock on its directory, as the library takes
    (os/output.h). Like it this does not wait for ever. Where there is no such directory, the file will tell."""
    try:
        directory = os.open(path.absolute().parent, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    except OSError:
        directory = -1
    try:
        for _ in range(_LOCK_TRIES):
            if directory < 0 or try_lock(directory):
                break
            time.sleep(_LOCK_WAIT_SECONDS)
        yield
    finally:
        if directory >= 0:
            os.close(directory)


def write(path: Path, data: bytes, *, force: bool) -> None:
    """A file that is written over keeps its owner and its mode."""
    old = check_target(path, force=force)
    part = path.with_name(f"{path.name}.{time.time_ns()}.part")
    try:
        with part.open("xb") as file:
            if old is not None:
                os.fchown(file.fileno(), old.st_uid, old.st_gid)
                os.fchmod(file.fileno(), stat.S_IMODE(old.st_mode))
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        if not force:
            path.open("xb").close()  # only now it is sure that nobody else has made it
        part.replace(path)
    except OSError as error:
        raise CannotError(f"{path}: cannot be written: {error.strerror}") from error
    finally:
        part.unlink(missing_ok=True)
