"""Another process's memory, read and written without stopping it (process_vm_readv(2)). Any address may be asked."""

from __future__ import annotations

import ctypes
import errno
from collections.abc import Sequence

from hakmem_observe import procfs
from hakmem_observe.errors import DeniedError, EndedError

_BATCH = 512  # of at most IOV_MAX pieces in a call
_TOP = 1 << 64

_libc = ctypes.CDLL(None, use_errno=True)


class _Piece(ctypes.Structure):
    _fields_ = (("base", ctypes.c_void_p), ("length", ctypes.c_size_t))


for _function in (_libc.process_vm_readv, _libc.process_vm_writev):
    _function.restype = ctypes.c_ssize_t
    _function.argtypes = (
        ctypes.c_int,
        ctypes.POINTER(_Piece),
        ctypes.c_ulong,
        ctypes.POINTER(_Piece),
        ctypes.c_ulong,
        ctypes.c_ulong,
    )


def _fits(address: int, size: int) -> bool:
    return size > 0 and 0 < address < _TOP - size


class Memory:
    def __init__(self, pid: int) -> None:
        self.pid = pid
        self._thread = procfs.thread(pid)

    def _is_by_another(self, number: int) -> bool:
        """Is it to be tried again, by way of another thread, after this error? Raises unless it is that, or only this
        address that cannot be read."""
        if number == errno.ESRCH:
            before, self._thread = self._thread, procfs.thread(self.pid)
            if self._thread is None:
                raise EndedError(self.pid)
            return self._thread != before
        if number in (errno.EPERM, errno.ENOSYS):
            raise DeniedError(
                f"process {self.pid}: its memory may not be read; legal for its own user and root, "
                "where kernel.yama.ptrace_scope is 0; or start it with `hakmem run --live`"
            )
        return False

    def _read_batch(self, pieces: Sequence[tuple[int, int]]) -> list[bytes | None]:
        buffers = [ctypes.create_string_buffer(size) for _, size in pieces]
        local = (_Piece * len(pieces))(*(_Piece(ctypes.addressof(b), len(b)) for b in buffers))
        remote = (_Piece * len(pieces))(*(_Piece(*piece) for piece in pieces))
        found: list[bytes | None] = []
        while len(found) < len(pieces):
            first = len(found)
            count = len(pieces) - first
            offset = first * ctypes.sizeof(_Piece)
            got = _libc.process_vm_readv(
                self._thread or self.pid,
                ctypes.cast(ctypes.addressof(local) + offset, ctypes.POINTER(_Piece)),
                count,
                ctypes.cast(ctypes.addressof(remote) + offset, ctypes.POINTER(_Piece)),
                count,
                0,
            )
            if got < 0:
                if self._is_by_another(ctypes.get_errno()):
                    continue
                got = 0
            while len(found) < len(pieces) and got >= pieces[len(found)][1]:
                got -= pieces[len(found)][1]
                found.append(buffers[len(found)].raw)
            if len(found) < len(pieces):
                found.append(None)  # here it stopped
        return found

    def read_many(self, pieces: Sequence[tuple[int, int]]) -> list[bytes | None]:
        """Of each address and size; None where that cannot be read. Sizes are the caller's, never read from there."""
        found: list[bytes | None] = [None] * len(pieces)
        legal = [i for i, (address, size) in enumerate(pieces) if _fits(address, size)]
        for start in range(0, len(legal), _BATCH):
            batch = legal[start : start + _BATCH]
            for i, data in zip(batch, self._read_batch([pieces[i] for i in batch])):
                found[i] = data
        return found

    def read(self, address: int, size: int) -> bytes | None:
        return self.read_many([(address, size)])[0]

    def word(self, address: int) -> int | None:
        data = self.read(address, 8)
        return None if data is None else int.from_bytes(data, "little")

    def write(self, address: int, data: bytes) -> bool:
        buffer = ctypes.create_string_buffer(data, len(data))
        local = _Piece(ctypes.addressof(buffer), len(data))
        remote = _Piece(address, len(data))
        done = -1
        while done < 0:
            task = self._thread or self.pid
            done = _libc.process_vm_writev(task, ctypes.byref(local), 1, ctypes.byref(remote), 1, 0)
            if done < 0 and not self._is_by_another(ctypes.get_errno()):
                break
        return bool(done == len(data))
