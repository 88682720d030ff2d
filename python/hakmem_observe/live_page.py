"""The page that `run --live` shares: the second way to a process whose memory may not be read."""

from __future__ import annotations

import os
import stat
import struct
import time
from dataclasses import replace
from pathlib import Path

from hakmem_cli import live
from hakmem_cli.say import CannotError
from hakmem_observe import procfs
from hakmem_observe.errors import AbsentError, TornError
from hakmem_observe.layout import VERSION
from hakmem_observe.snapshot import DECODER, Snapshot, from_json

MAGIC = b"hakmemL\0"

_TEXT = 1024
_SEQUENCE = 552
_HEAD = struct.Struct("<QIIQ")  # sequence, length, pid, start time
_MOST_BYTES = 64 << 20
_TRIES = 100


def places(pid: int, uid: int) -> list[Path]:
    named, runtime = os.environ.get("HAKMEM_LIVE"), os.environ.get("XDG_RUNTIME_DIR")
    found = [Path(named) / str(pid)] if named else []
    directories = [live.of_session(runtime)] if runtime else []
    directories += [live.of_session(f"/run/user/{uid}"), live.of_user(uid)]
    return [*dict.fromkeys([*found, *(directory / str(pid) for directory in directories)])]


def _identity(told: os.stat_result) -> tuple[int, int]:
    return told.st_dev, told.st_ino


class _File:
    """Not mapped: its owner may cut it short, and who reads what was there would be killed."""

    def __init__(self, descriptor: int, told: os.stat_result) -> None:
        self._descriptor = descriptor
        self.size = told.st_size
        self.identity = _identity(told)

    def __del__(self) -> None:
        os.close(self._descriptor)

    def read(self, offset: int, size: int) -> bytes | None:
        """None: it has been cut short."""
        try:
            data = os.pread(self._descriptor, size, offset)
        except (OSError, ValueError):
            return None
        return data if len(data) == size else None

    def write(self, offset: int, data: bytes) -> bool:
        try:
            return os.pwrite(self._descriptor, data, offset) == len(data)
        except OSError:
            return False


def _open(path: Path, uid: int) -> _File | None:
    """None if it is no page of this user's. Nobody else may choose what is read here."""
    try:
        descriptor = os.open(path, os.O_RDWR | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError:
        return None
    told = os.fstat(descriptor)
    if not stat.S_ISREG(told.st_mode) or told.st_uid != uid or not _TEXT < told.st_size <= _MOST_BYTES:
        os.close(descriptor)
        return None
    return _File(descriptor, told)


class LivePage:
    """Raises AbsentError if the process shares none, or has left one of an earlier process of its number."""

    def __init__(self, pid: int) -> None:
        self.pid = pid
        self._written = 0
        self._written_at_ms = 0
        uid, _ = procfs.owner(pid)
        stale = None
        for path in places(pid, uid):
            file = _open(path, uid)
            head = file.read(0, _TEXT) if file is not None else None
            if file is None or head is None or head[: len(MAGIC)] != MAGIC:
                continue
            version = struct.unpack_from("<I", head, 8)[0]
            if version != VERSION:
                raise AbsentError(f"{path}: another version of hakmem's live page ({version}); legal here is {VERSION}")
            _, _, owner, started = _HEAD.unpack_from(head, _SEQUENCE)
            if owner == pid and started == procfs.start_time(pid):
                self.path = path
                self._file = file
                return
            stale = path
        if stale is not None:
            raise AbsentError(f"{stale}: stale, of an earlier process {pid}; it may be removed")
        raise AbsentError(f"process {pid}: shares no live page; start it with `hakmem run --live`")

    def is_there(self) -> bool:
        """False after the process has become another program, which makes a page of its own. One that is gone, as at
        the end of the process, is not another's."""
        try:
            return _identity(os.stat(self.path, follow_symlinks=False)) == self._file.identity
        except OSError:
            return True

    def read(self, offset: int, size: int) -> bytes | None:
        return self._file.read(offset, size)

    def write(self, offset: int, data: bytes) -> bool:
        return self._file.write(offset, data)

    def _uptime_ms(self, sequence: int, unix_ms: int) -> int:
        """When the page was written: in an idle process it is old, and its two times are of the same moment. Clocks are
        rounded, so it is not found out each time anew."""
        if self._written != sequence:
            since_ms = max(0, int(time.time() * 1000) - unix_ms)
            self._written_at_ms = max(0, procfs.age_ms(self.pid) - since_ms)
            self._written = sequence
        return self._written_at_ms

    def _head(self) -> tuple[int, int]:
        """Sequence and length."""
        head = self._file.read(_SEQUENCE, _HEAD.size)
        if head is None:
            raise CannotError(f"process {self.pid}: its live page has been cut short")
        sequence, length, _, _ = _HEAD.unpack(head)
        return sequence, length

    def snapshot(self) -> Snapshot:
        procfs.start_time(self.pid)
        for _ in range(_TRIES):
            before, length = self._head()
            text = self._file.read(_TEXT, length) if length <= self._file.size - _TEXT else None
            after, _ = self._head()
            if before == after and before % 2 == 0 and before > 0 and length == 0:
                room = (self._file.size - _TEXT) >> 10
                raise CannotError(
                    f"process {self.pid}: its live page is empty: the statistics do not fit into its {room} KiB, "
                    "or the file system is full"
                )
            if before == after and before % 2 == 0 and text:
                try:
                    taken = from_json(DECODER.decode(text.decode()), f"process {self.pid}: its live page")
                    return replace(taken, pid=self.pid, uptime_ms=self._uptime_ms(before, taken.unix_ms))
                except (ValueError, RecursionError) as error:
                    raise TornError(self.pid, "its live page is no JSON") from error
            time.sleep(0.001)
        raise CannotError(f"process {self.pid}: its live page is never at rest")
