"""`hakmem info`: which binary this is, and what the machine allows."""

import ctypes
import os
import platform
import resource
from pathlib import Path

from hakmem_cli import build

_NT_GNU_BUILD_ID = 3


def _library_strings() -> tuple[str, str]:
    library = ctypes.CDLL(str(build.ensure_library()))
    library.hak_version.restype = ctypes.c_char_p
    library.hak_build_info.restype = ctypes.c_char_p
    return library.hak_version().decode(), library.hak_build_info().decode()


def version() -> str:
    return f"hakmem {_library_strings()[0]}"


def _build_id(path: Path) -> str:
    """The GNU build id, from the note that says "GNU" and has its type."""
    data = path.read_bytes()
    header = (4).to_bytes(4, "little") + (20).to_bytes(4, "little") + _NT_GNU_BUILD_ID.to_bytes(4, "little") + b"GNU\0"
    at = data.find(header)
    return data[at + len(header):at + len(header) + 20].hex() if at >= 0 else "none"


def _read(path: str, default: str = "unknown") -> str:
    try:
        return Path(path).read_text().strip()
    except OSError:
        return default


def _limit(which: int) -> str:
    soft, _ = resource.getrlimit(which)
    return "unlimited" if soft == resource.RLIM_INFINITY else f"{soft / 2**20:.1f} MiB"


def _cgroup_limit() -> str:
    for path in ("/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes"):
        text = _read(path, "")
        if text.isdigit() and int(text) < 2**60:
            return f"{int(text) / 2**20:.1f} MiB"
        if text:
            return "unlimited"
    return "none found"


def info() -> int:
    path = build.ensure_library()
    number, line = _library_strings()
    rows = [
        ("version", number),
        ("library", str(path)),
        ("build id", _build_id(path)),
        ("build", line),
        ("kernel", platform.release()),
        ("machine", f"{platform.machine()}, {os.cpu_count()} CPUs"),
        ("libc", " ".join(platform.libc_ver()) or "unknown"),
        ("page size", f"{os.sysconf('SC_PAGE_SIZE')} bytes"),
        ("huge pages", _read("/sys/kernel/mm/transparent_hugepage/enabled")),
        ("overcommit", _read("/proc/sys/vm/overcommit_memory")),
        ("max map count", _read("/proc/sys/vm/max_map_count")),
        ("RLIMIT_AS", _limit(resource.RLIMIT_AS)),
        ("RLIMIT_DATA", _limit(resource.RLIMIT_DATA)),
        ("RLIMIT_MEMLOCK", _limit(resource.RLIMIT_MEMLOCK)),
        ("cgroup memory", _cgroup_limit()),
    ]
    width = max(len(name) for name, _ in rows)
    for name, value in rows:
        print(f"{name:<{width}}  {value}")
    return 0
