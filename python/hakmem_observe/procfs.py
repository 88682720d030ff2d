"""What /proc says of processes."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from hakmem_cli.arguments import whole_number
from hakmem_cli.say import CannotError, printable
from hakmem_observe.errors import DeniedError, EndedError

_PROC = Path("/proc")
_DELETED = " (deleted)"
_MOST_MAPPINGS = 1 << 20
_ENDED = (b"Z", b"X")


@dataclass(frozen=True)
class Mapping:
    start: int
    end: int
    permissions: str
    offset: int
    inode: int
    path: str  # as the process sees it, without the kernel's " (deleted)"
    deleted: bool

    @property
    def name(self) -> str:
        return self.path.rpartition("/")[2]


def _is_there(task: int) -> bool:
    try:
        return _fields((_PROC / str(task) / "stat").read_bytes())[0] not in _ENDED
    except OSError:
        return False


def _tasks(pid: int) -> Iterator[int]:
    yield pid
    with suppress(OSError):  # the process has ended
        yield from sorted(int(name) for name in os.listdir(_PROC / str(pid) / "task"))


def thread(pid: int) -> int | None:
    """By whose number the process's memory and files are to be had: those of its first thread go with it, which may end
    before the others do, as where main calls pthread_exit(). None: the process has ended."""
    return next(filter(_is_there, _tasks(pid)), None)


def directory(pid: int) -> Path:
    return _PROC / str(thread(pid) or pid)


def read(pid: int, name: str) -> bytes:
    """A file of the process's directory."""
    return _read(directory(pid) / name, pid)


def _read(path: Path, pid: int) -> bytes:
    try:
        return path.read_bytes()
    except (FileNotFoundError, ProcessLookupError) as error:
        raise EndedError(pid) from error
    except PermissionError as error:
        raise DeniedError(
            f"process {pid}: /proc/{pid}/{path.name} may not be read; legal for its own user and root"
        ) from error


def _parse_mapping(line: str) -> Mapping:
    fields = line.split(None, 5)
    start, end = (int(word, 16) for word in fields[0].split("-"))
    path = fields[5] if len(fields) > 5 else ""
    deleted = path.endswith(_DELETED)
    path = path[: -len(_DELETED)] if deleted else path
    return Mapping(start, end, fields[1], int(fields[2], 16), int(fields[4]), path, deleted)


def mappings(pid: int) -> list[Mapping]:
    lines = read(pid, "maps").decode(errors="surrogateescape").split("\n")[:_MOST_MAPPINGS]
    return [_parse_mapping(line) for line in lines if line]


def _fields(stat: bytes) -> list[bytes]:
    """Behind the name, which may be anything."""
    return stat.rpartition(b")")[2].split()


def _stat(pid: int) -> list[bytes]:
    """The process's own, whichever of its threads have ended."""
    return _fields(_read(_PROC / str(pid) / "stat", pid))


def start_time(pid: int) -> int:
    """In ticks since the machine's start: with the number it names a process for ever. Raises if it is no more."""
    fields = _stat(pid)
    if fields[0] in _ENDED and thread(pid) is None:
        raise EndedError(pid)
    return int(fields[19])


def faults(pid: int) -> dict[str, int]:
    """Page faults since the process's start."""
    fields = _stat(pid)
    return {"minor": int(fields[7]), "major": int(fields[9])}


def age_ms(pid: int) -> int:
    """Since the process's start."""
    return max(0, int((time.clock_gettime(time.CLOCK_BOOTTIME) - start_time(pid) / os.sysconf("SC_CLK_TCK")) * 1000))


def owner(pid: int) -> tuple[int, int]:
    """Its effective user and group."""
    rows = dict(line.split(":", 1) for line in read(pid, "status").decode(errors="replace").splitlines() if ":" in line)
    return int(rows["Uid"].split()[1]), int(rows["Gid"].split()[1])


def status(pid: int) -> dict[str, str]:
    text = read(pid, "status").decode(errors="replace")
    return {name: value.strip() for name, _, value in (line.partition(":") for line in text.splitlines())}


def command(pid: int) -> str:
    """Its words, or its name if it has none."""
    words = [word.decode(errors="replace") for word in read(pid, "cmdline").split(b"\0") if word]
    text = " ".join(words) or read(pid, "comm").decode(errors="replace").strip()
    return printable(" ".join(text.split()))


def resident_bytes(pid: int) -> int:
    return int(read(pid, "statm").split()[1]) * os.sysconf("SC_PAGE_SIZE")


def is_process(pid: int) -> bool:
    return (_PROC / str(pid)).is_dir()


def all_processes() -> Iterator[int]:
    for entry in _PROC.iterdir():
        if entry.name.isdigit():
            yield int(entry.name)


def parse_pid(text: str) -> int:
    """A process there is."""
    most = int((_PROC / "sys/kernel/pid_max").read_text())
    pid = whole_number(text, 1, most)
    if pid is None:
        raise CannotError(f"{text[:40]}: no process; legal is the number of a process, 1 to {most}")
    if not is_process(pid):
        raise CannotError(f"{pid}: no such process; `hakmem top` lists those that use hakmem")
    return pid
