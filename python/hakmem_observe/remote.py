"""A running process that uses hakmem: its statistics, and requests to it."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import replace
from enum import IntEnum
from typing import Protocol

from hakmem_cli import files
from hakmem_cli.say import CannotError
from hakmem_observe import layout as lay
from hakmem_observe import locate, procfs, scratch
from hakmem_observe.errors import AbsentError, DeniedError, EndedError
from hakmem_observe.live_page import LivePage
from hakmem_observe.memory import Memory
from hakmem_observe.reading import Reader
from hakmem_observe.scratch import Scratch
from hakmem_observe.snapshot import Snapshot

WAIT_SECONDS = 3.0
_WORK_SECONDS = 60.0
_TURN_SECONDS = 60.0
_POLL_SECONDS = 0.005


class Request(IntEnum):
    START_PROFILER = 1  # argument: bytes between samples, 0: the default
    STOP_PROFILER = 2
    DUMP_PROFILE = 3  # to the path
    PURGE = 4
    WRITE_STATISTICS = 5  # one JSON object, to the path


def _never() -> bool:
    return False


class Words(Protocol):
    """Where the words of a request are: in the process's memory, or in its live page."""

    def read(self, offset: int, size: int) -> bytes | None: ...
    def write(self, offset: int, data: bytes) -> bool: ...


class _Control:
    def __init__(self, memory: Memory, address: int) -> None:
        self._memory = memory
        self._address = address

    def read(self, offset: int, size: int) -> bytes | None:
        return self._memory.read(self._address + offset, size)

    def write(self, offset: int, data: bytes) -> bool:
        return self._memory.write(self._address + offset, data)


class Process:
    """Raises CannotError, the line for the user, if the process does not use hakmem or may not be looked at."""

    def __init__(self, pid: int) -> None:
        self.pid = pid
        self._started = procfs.start_time(pid)
        self._page: LivePage | None = None
        self._attach()

    def _attach(self) -> None:
        try:
            memory = Memory(self.pid)
            address, library = locate.control_address(self.pid, memory)
            self._reader = Reader(memory, address, library)
            self._words: Words = _Control(memory, address)
            self._page = None
        except DeniedError as denied:
            try:
                self._page = LivePage(self.pid)
            except EndedError:
                raise
            except AbsentError as absent:
                raise DeniedError(f"{denied}" if "shares no" in str(absent) else f"{denied}; {absent}") from denied
            self._words = self._page

    def _check(self) -> None:
        """Is it still the same process?"""
        if procfs.start_time(self.pid) != self._started:
            raise EndedError(self.pid)

    def snapshot(self) -> Snapshot:
        self._check()
        source = self._reader if self._page is None else self._page
        if not source.is_there():
            self._attach()  # it has become another program
        if self._page is not None:
            return self._page.snapshot()
        taken = self._reader.read()
        self._check()
        return taken

    def with_map(self) -> Snapshot:
        """A snapshot with the map of superslabs, if the process's memory may be read."""
        taken = self.snapshot()
        if self._page is not None:
            return taken
        return replace(taken, more={**taken.more, **self._reader.map()})

    def request(
        self,
        kind: int,
        argument: int = 0,
        path: str = "",
        wait_seconds: float | None = None,
        given_up: Callable[[], bool] = _never,
    ) -> int:
        """0 or the errno value it failed with. Raises if no thread comes to the allocator's door in time, or who asks
        has `given_up`: then nothing is left waiting there."""
        self._check()
        name = os.fsencode(path)
        if len(name) >= lay.PATH_BYTES or b"\0" in name:
            raise CannotError(f"{path}: too long for a request; legal are up to {lay.PATH_BYTES - 1} bytes")
        with self._turn(given_up):
            return self._ask(kind, argument, name, WAIT_SECONDS if wait_seconds is None else wait_seconds, given_up)

    @contextmanager
    def _turn(self, given_up: Callable[[], bool]) -> Iterator[None]:
        """Tools ask one after the other: there are words for one request, and its end does not say whose it was. The
        lock is on a file that only the same user, or root, can open, and goes with the tool."""
        path = str(procfs.directory(self.pid) / "maps" if self._page is None else self._page.path)
        try:
            file = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
        except OSError as error:
            self._check()
            raise CannotError(f"{path}: cannot be opened: {error.strerror}") from error
        try:
            deadline = time.monotonic() + _TURN_SECONDS
            while not files.try_lock(file):
                why = f"process {self.pid}: another tool has been asking it for {_TURN_SECONDS:g} s"
                self._pause(deadline, why, given_up)
            yield
        finally:
            os.close(file)

    def _ask(self, kind: int, argument: int, name: bytes, wait_seconds: float, given_up: Callable[[], bool]) -> int:
        deadline = time.monotonic() + wait_seconds
        while self._head().request != 0:
            self._pause(deadline, f"process {self.pid}: another tool's request is waiting there; try again", given_up)
        before = self._head().served
        self._write(lay.ARGUMENT, argument.to_bytes(8, "little"))
        self._write(lay.PATH, name + b"\0")
        self._write(lay.REQUEST, int(kind).to_bytes(4, "little"))
        try:
            self._await_taken(deadline, wait_seconds, given_up)
        except (CannotError, KeyboardInterrupt) as error:
            if not isinstance(error, EndedError):
                self._write(lay.REQUEST, bytes(4))
            raise
        # It is taken first, and told as served when it is done.
        done_by = time.monotonic() + _WORK_SECONDS
        while self._head().served == before:
            why = f"process {self.pid}: took the request, but is not done after {_WORK_SECONDS:g} s"
            self._pause(done_by, why, given_up)
        return self._head().result

    def _await_taken(self, deadline: float, seconds: float, given_up: Callable[[], bool]) -> None:
        while self._head().request != 0:
            why = "no thread of it has come to the allocator's door; it may be idle or stopped"
            self._pause(deadline, f"process {self.pid}: did not answer in {seconds:g} s: {why}", given_up)

    def _pause(self, deadline: float, otherwise: str, given_up: Callable[[], bool]) -> None:
        self._check()
        if given_up():
            raise CannotError(f"process {self.pid}: the request is given up")
        if time.monotonic() > deadline:
            raise CannotError(otherwise)
        time.sleep(_POLL_SECONDS)

    def scratch(self) -> AbstractContextManager[Scratch]:
        """A directory for what it is asked to write."""
        return scratch.of(self.pid)

    def _head(self) -> lay.Head:
        data = self._words.read(0, lay.HEAD_BYTES)
        if data is None:
            self._check()
            raise CannotError(f"process {self.pid}: its control block is gone; it runs another program now")
        return lay.read_head(data)

    def _write(self, offset: int, data: bytes) -> None:
        if not self._words.write(offset, data):
            self._check()
            raise CannotError(f"process {self.pid}: its control block cannot be written")
