"""What the machine and this user's limits allow."""

from __future__ import annotations

import os
import platform
import resource
from collections.abc import Iterator
from pathlib import Path

from hakmem_cli import info
from hakmem_cli.say import CannotError
from hakmem_observe import words
from hakmem_observe.checks.finding import Finding, ok, warning
from hakmem_observe.memory import Memory

_DEFAULT_MAPS = 65530
_SOFT_REST = 8
"""The part of a group's limit that hakmem leaves to what is not its own."""
_CAP_SYS_PTRACE = 19
_SCOPES = {
    1: (
        "only parents may read a process's memory",
        "sysctl kernel.yama.ptrace_scope=0, or be root, or `hakmem run --live`",
    ),
    2: ("only root may read a process's memory", "be root, or `hakmem run --live`"),
    3: ("nobody may read another process's memory", "`hakmem run --live`"),
}


def _read(path: str) -> str:
    try:
        return Path(path).read_text().strip()
    except OSError:
        return ""


def _chosen(text: str) -> str:
    """The word in brackets."""
    return text.partition("[")[2].partition("]")[0] or text


def _may_trace() -> bool:
    mask = next((line.split()[1] for line in _read("/proc/self/status").splitlines() if line.startswith("CapEff")), "0")
    return bool(int(mask, 16) >> _CAP_SYS_PTRACE & 1)


def _kernel() -> Finding:
    release = platform.release()
    version = tuple(int(word) for word in release.split("-")[0].split(".")[:2] if word.isdigit())
    if version < (5, 4):
        return warning(f"Linux {release}", "hakmem is written for 5.4 and later")
    return ok(f"Linux {release}, {platform.machine()}, pages of {os.sysconf('SC_PAGE_SIZE')} bytes")


def _reading() -> Finding:
    """Whether `stat` and `top` can look."""
    scope = _read("/proc/sys/kernel/yama/ptrace_scope")
    number = int(scope) if scope.isdigit() else 0
    if number in _SCOPES and (number == 3 or not _may_trace()):
        what, advice = _SCOPES[number]
        return warning(f"kernel.yama.ptrace_scope is {number}: {what}", advice)
    probe = bytearray(b"hakmem")
    try:
        Memory(os.getpid()).read(id(probe), 8)
    except CannotError:
        return warning("process_vm_readv is refused here (seccomp?): stat and top cannot read", "`hakmem run --live`")
    return ok("stat and top may read processes of " + ("all users" if _may_trace() else "this user"))


def limit(name: str, bytes_allowed: int | None) -> Finding:
    if bytes_allowed is None:
        return ok(f"{name}: unlimited")
    size = words.count_bytes(bytes_allowed)
    return warning(
        f"{name} is {size}: hakmem reserves address space ahead, which counts",
        "ulimit -v unlimited, ulimit -d unlimited",
    )


def _own_limit(which: int) -> int | None:
    soft, _ = resource.getrlimit(which)
    return None if soft == resource.RLIM_INFINITY else soft


def _group_limit(limit: int | None) -> Finding:
    if limit is None:
        return ok("control group's memory: unlimited")
    soft = limit - limit // _SOFT_REST
    told = f"{words.count_bytes(limit)}; hakmem's soft limit is {words.count_bytes(soft)}, if HAKMEM_LIMIT names none"
    return ok(f"control group's memory: {told}")


def check(process: str = "self") -> Iterator[Finding]:
    """`process`: whose control group counts."""
    yield _kernel()
    yield _reading()
    huge = _chosen(_read("/sys/kernel/mm/transparent_hugepage/enabled")) or "not there"
    note = "large heaps would gain from madvise" if huge in ("never", "not there") else ""
    yield ok(f"transparent huge pages: {huge}", note)
    overcommit = _read("/proc/sys/vm/overcommit_memory")
    if overcommit == "2":
        yield warning(
            "vm.overcommit_memory is 2: memory counts when it is committed, not when it is used",
            "vm.overcommit_memory=0, or a higher vm.overcommit_ratio",
        )
    else:
        yield ok(f"vm.overcommit_memory: {overcommit or 'unknown'}")
    maps = _read("/proc/sys/vm/max_map_count")
    if maps.isdigit() and int(maps) < _DEFAULT_MAPS:
        advice = f"sysctl vm.max_map_count={_DEFAULT_MAPS}"
        yield warning(f"vm.max_map_count is {maps}: giving back holes needs mappings", advice)
    else:
        yield ok(f"vm.max_map_count: {maps or 'unknown'}")
    yield limit("RLIMIT_AS", _own_limit(resource.RLIMIT_AS))
    yield limit("RLIMIT_DATA", _own_limit(resource.RLIMIT_DATA))
    yield _group_limit(info.cgroup_limit(process))
    if "Seccomp:\t2" in _read("/proc/self/status"):
        yield ok("system calls are filtered here (seccomp), as in most containers")
