"""A directory for what a process is asked to write. Its user may put anything there, and root looks at it too: so all
is done with no more rights than that user has."""

from __future__ import annotations

import os
import stat
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from hakmem_cli.say import CannotError
from hakmem_observe import procfs

_MOST_BYTES = 1 << 28

# A container may have no /tmp, or one that is read-only; shared memory it has as a rule.
_PLACES = ("tmp", "dev/shm", "var/tmp")


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
    place: str  # in which directory of the process's
    path: Path  # as we see it

    @property
    def inside(self) -> str:
        """As the process names it."""
        return f"/{self.place}/{self.path.name}"

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


def _opened(root: Path, place: str) -> int:
    """A link in a process's root may say where it leads from there: here it would lead somewhere else."""
    flags = os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC
    found = os.open(root, flags)
    for name in place.split("/"):
        above = found
        try:
            found = os.open(name, flags | os.O_NOFOLLOW, dir_fd=above)
        finally:
            os.close(above)
    return found


@contextmanager
def _made(pid: int, place: str) -> Iterator[Scratch]:
    """By way of the descriptor it can be removed when the process is no more."""
    user, group = procfs.owner(pid)
    above = _opened(procfs.directory(pid) / "root", place)
    try:
        with _as_user(user, group):
            path = Path(tempfile.mkdtemp(prefix="hakmem-", dir=f"/proc/self/fd/{above}"))
        made = Scratch(pid, user, group, place, path)
        try:
            yield made
        finally:
            made.remove()
    finally:
        os.close(above)


@contextmanager
def of(pid: int) -> Iterator[Scratch]:
    """In a directory of the process's where anybody may write, only for its user."""
    with ExitStack() as stack:
        refused = []
        for place in _PLACES:
            try:
                made = stack.enter_context(_made(pid, place))
            except OSError as error:
                refused.append(f"/{place}: {error.strerror}")
            else:
                yield made
                return
    raise CannotError(f"process {pid}: nothing can be written where it sees it ({', '.join(refused)})")
