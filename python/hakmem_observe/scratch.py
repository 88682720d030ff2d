"""A directory for what a process is asked to write. Its user may put anything there, and root looks at it too: so all
is done with no more rights than that user has."""

from __future__ import annotations

import os
import stat
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from hakmem_cli.say import CannotError
from hakmem_observe import procfs

_MOST_BYTES = 1 << 28


@contextmanager
def _as_user(user: int, group: int) -> Iterator[None]:
    """Root becomes that user; who is somebody else stays so."""
    if os.geteuid() != 0 or user == 0:
        yield
        return
    own, groups = os.getegid(), os.getgroups()
    try:
        os.setgroups([group])
        os.setegid(group)
        os.seteuid(user)
        yield
    finally:
        os.seteuid(0)
        os.setegid(own)
        os.setgroups(groups)


@dataclass(frozen=True)
class Scratch:
    pid: int
    user: int
    group: int
    path: Path  # as we see it

    @property
    def inside(self) -> str:
        """As the process names it."""
        return f"/tmp/{self.path.name}"

    def read(self, name: str) -> bytes:
        """A file that the process has written. What would lead elsewhere or never end is none."""
        flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC
        try:
            with _as_user(self.user, self.group):
                descriptor = os.open(self.path / name, flags)
            with open(descriptor, "rb") as file:
                told = os.fstat(descriptor)
                if not stat.S_ISREG(told.st_mode) or told.st_size > _MOST_BYTES:
                    what = f"no regular file of up to {_MOST_BYTES >> 20} MiB"
                    raise CannotError(f"process {self.pid}: what it has written is {what}")
                return file.read(told.st_size)
        except OSError as error:
            raise CannotError(f"process {self.pid}: what it has written cannot be read: {error.strerror}") from error

    def remove(self) -> None:
        """With the files in it. Directories of others are theirs."""
        with suppress(OSError), _as_user(self.user, self.group):
            for path in self.path.iterdir():
                path.unlink()
            self.path.rmdir()


def _make(pid: int, above: int) -> Scratch:
    """By way of the descriptor it can be removed when the process is no more."""
    user, group = procfs.owner(pid)
    try:
        with _as_user(user, group):
            path = Path(tempfile.mkdtemp(prefix="hakmem-", dir=f"/proc/self/fd/{above}"))
    except OSError as error:
        raise CannotError(f"process {pid}: its /tmp cannot be written: {error.strerror}") from error
    return Scratch(pid, user, group, path)


@contextmanager
def of(pid: int) -> Iterator[Scratch]:
    """In the process's /tmp, only for its user."""
    try:
        above = os.open(f"/proc/{pid}/root/tmp", os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
    except OSError as error:
        raise CannotError(f"process {pid}: its /tmp cannot be opened: {error.strerror}") from error
    try:
        made = _make(pid, above)
        try:
            yield made
        finally:
            made.remove()
    finally:
        os.close(above)
