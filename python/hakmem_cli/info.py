"""`hakmem info`: which binary this is, and what the machine allows."""

from __future__ import annotations

import os
import platform
import re
import resource
from pathlib import Path

from hakmem_cli import build

_NT_GNU_BUILD_ID = 3
_SHA1_BYTES = 20
_BUILD_LINE = re.compile(rb"hakmem [\d.]+, commit [^\0]*")


def _read(path: str | Path, default: str = "unknown") -> str:
    try:
        return Path(path).read_text().strip()
    except OSError:
        return default


def print_version() -> int:
    """Of the sources: this needs no built library."""
    found = re.search(r"\(hakmem VERSION ([\d.]+)", _read(build.ROOT / "CMakeLists.txt"))
    print(f"hakmem {found[1] if found else 'of unknown version'}")
    return 0


def _build_info(path: Path) -> str:
    """What hak_build_info() returns, found in the file: musl loads the library only at a program's start."""
    found = _BUILD_LINE.search(path.read_bytes())
    return found[0].decode(errors="replace") if found else "unknown"


def build_id(path: Path) -> str:
    """The identity that the linker wrote: an ELF note, found by its header and name."""
    data = path.read_bytes()
    words = (len(b"GNU\0"), _SHA1_BYTES, _NT_GNU_BUILD_ID)
    _, found, rest = data.partition(b"".join(word.to_bytes(4, "little") for word in words) + b"GNU\0")
    return rest[:_SHA1_BYTES].hex() if found else "none"


def _bytes(count: int) -> str:
    return f"{count / 2**20:.1f} MiB"


def _limit(which: int) -> str:
    soft, hard = (
        "unlimited" if limit == resource.RLIM_INFINITY else _bytes(limit) for limit in resource.getrlimit(which)
    )
    return soft if soft == hard else f"{soft} (can be raised to {hard})"


def cgroup_limit(process: str = "self") -> int | None:
    """The lowest limit in bytes on the way from a process's group to the root, of version 1 or 2; or none."""
    limits = []
    for line in _read(f"/proc/{process}/cgroup", "").splitlines():
        _, controllers, group = line.split(":", 2)
        if controllers and "memory" not in controllers.split(","):
            continue
        root = Path("/sys/fs/cgroup/memory" if controllers else "/sys/fs/cgroup")
        names = ("memory.limit_in_bytes",) if controllers else ("memory.max", "memory.high")
        own = root / group.lstrip("/")
        texts = [_read(directory / name, "") for directory in (own, *own.parents) for name in names]
        # Version 1 says "unlimited" with a huge number.
        limits += [int(text) for text in texts if text.isdigit() and int(text) < 2**60]
    return min(limits, default=None)


def _cgroup_limit() -> str:
    limit = cgroup_limit()
    return "unlimited" if limit is None else _bytes(limit)


def _processor() -> str:
    found = re.search(r"^model name\s*:\s*(.+)$", _read("/proc/cpuinfo"), re.MULTILINE)
    return found[1] if found else "unknown model"


def library_facts(path: Path) -> list[tuple[str, str]]:
    """Which binary it is."""
    return [("build id", build_id(path)), ("build", _build_info(path))]


def machine_facts() -> list[tuple[str, str]]:
    """Which system it runs on."""
    return [
        ("kernel", f"{platform.system()} {platform.release()}"),
        ("libc", " ".join(platform.libc_ver()).strip() or "unknown"),
        ("machine", f"{platform.machine()}, {_processor()}"),
        ("processors", f"{len(os.sched_getaffinity(0))} of {os.cpu_count()}"),
        ("page size", f"{os.sysconf('SC_PAGE_SIZE')} bytes"),
        ("huge pages", _read("/sys/kernel/mm/transparent_hugepage/enabled")),
        ("overcommit", _read("/proc/sys/vm/overcommit_memory")),
    ]


def limit_facts() -> list[tuple[str, str]]:
    return [
        ("max map count", _read("/proc/sys/vm/max_map_count")),
        ("RLIMIT_AS", _limit(resource.RLIMIT_AS)),
        ("RLIMIT_DATA", _limit(resource.RLIMIT_DATA)),
        ("RLIMIT_MEMLOCK", _limit(resource.RLIMIT_MEMLOCK)),
        ("cgroup memory", _cgroup_limit()),
    ]


def info() -> int:
    path = build.ensure_library()
    rows = [("library", str(path)), *library_facts(path), *machine_facts(), *limit_facts()]
    width = max(len(name) for name, _ in rows)
    for name, value in rows:
        print(f"{name:<{width}}  {value}")
    return 0
