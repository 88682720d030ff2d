"""A system call that the kernel refuses to this process, and to what it starts, as containers may have it."""

from __future__ import annotations

import ctypes
import errno
import platform

PTRACE = {"x86_64": 101, "aarch64": 117}[platform.machine()]

_SET_NO_NEW_PRIVILEGES, _SET_SECCOMP, _FILTER = 38, 22, 2
_LOAD_WORD, _JUMP_IF_EQUAL, _RETURN = 0x20, 0x15, 0x06
_ALLOW, _REFUSE = 0x7FFF0000, 0x00050000


class _Step(ctypes.Structure):
    _fields_ = (
        ("code", ctypes.c_uint16),
        ("if_true", ctypes.c_uint8),
        ("if_false", ctypes.c_uint8),
        ("value", ctypes.c_uint32),
    )


class _Program(ctypes.Structure):
    _fields_ = (("length", ctypes.c_uint16), ("steps", ctypes.POINTER(_Step)))


def refuse(call: int) -> None:
    """With EPERM, from now on. `call`: its number."""
    steps = (_Step * 4)(
        _Step(_LOAD_WORD, 0, 0, 0),  # the number is the first word
        _Step(_JUMP_IF_EQUAL, 0, 1, call),
        _Step(_RETURN, 0, 0, _REFUSE | errno.EPERM),
        _Step(_RETURN, 0, 0, _ALLOW),
    )
    libc = ctypes.CDLL(None, use_errno=True)
    program = _Program(len(steps), steps)
    if (
        libc.prctl(_SET_NO_NEW_PRIVILEGES, 1, 0, 0, 0) != 0
        or libc.prctl(_SET_SECCOMP, _FILTER, ctypes.byref(program), 0, 0) != 0
    ):
        raise OSError(ctypes.get_errno(), "no filter of system calls")
