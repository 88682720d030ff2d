"""The allocators to compare with: where each comes from, what version it really is, whether it serves."""

from __future__ import annotations

import json
import os
import platform
import subprocess
import zipfile
from collections.abc import Callable, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

from hakmem_bench import sources
from hakmem_bench.model import OURS, ROOT, Peer
from hakmem_cli import info, modes
from hakmem_cli.arguments import named

KEPT = ROOT / "build" / "lab" / "peers"

_RECORD = KEPT / "peers.json"
_REQUIRED_SECONDS = 60
# Beside a peer in the record: the digest of what it was made of.
_MADE_OF = "made of"

# In the order of tables.
_SOURCES: dict[str, sources.Source] = {
    "glibc": sources.LibC(),
    "jemalloc": sources.Debian("libjemalloc2", "libjemalloc.so.2", version="mallctl"),
    "tcmalloc": sources.Debian("libtcmalloc-minimal4", "libtcmalloc_minimal.so.4"),
    "mimalloc2": sources.Debian("libmimalloc2.0", "libmimalloc.so.2", version="mi_version"),
    "tbbmalloc": sources.Debian("libtbbmalloc2", "libtbbmalloc_proxy.so.2"),
    "scudo": sources.Debian("libclang-rt-19-dev", f"libclang_rt.scudo_standalone-{platform.machine()}.so"),
    "mimalloc": sources.PyPI("cmeel-mimalloc", "libmimalloc.so", version="mi_version"),
    "snmalloc": sources.Crate("snmalloc", "snmalloc-sys"),
    "google-tcmalloc": sources.Crate(
        "google-tcmalloc",
        "libtcmalloc-sys",
        # Otherwise the C library has the registration that its caches per CPU need.
        environment={"GLIBC_TUNABLES": "glibc.pthread.rseq=0"},
        works="peer_caches_per_cpu_are_on",
    ),
    "rpmalloc": sources.Crate("rpmalloc", "rpmalloc-sys"),
    "jemalloc-crate": sources.Crate("jemalloc", "tikv-jemalloc-sys", version="peer_mallctl"),
    "mimalloc-crate": sources.Crate("mimalloc", "libmimalloc-sys", version="peer_mi_version"),
    "mimalloc-secure": sources.Crate("mimalloc-secure", "libmimalloc-sys", version="peer_mi_version"),
    "snmalloc-check": sources.Crate("snmalloc-check", "snmalloc-sys"),
    "hardened-malloc": sources.Crate("hardened-malloc", "hardened-malloc-sys"),
}

# Built against attackers, at the cost of time and memory: beside the hardened library, or by name.
SECURE: tuple[str, ...] = ("mimalloc-secure", "snmalloc-check", "hardened-malloc")
LEGAL: tuple[str, ...] = (OURS, *_SOURCES)
NAMES: tuple[str, ...] = tuple(name for name in LEGAL if name not in SECURE)
QUICK: tuple[str, ...] = (OURS, "glibc", "jemalloc", "tcmalloc", "mimalloc2", "tbbmalloc", "mimalloc", "snmalloc")


def choose(text: str | None, default: Sequence[str] = NAMES) -> list[str]:
    """From a list with commas."""
    if text is None:
        return list(default)
    return list(dict.fromkeys(named(text, "peer", LEGAL)))


def ours(library: Path, name: str = OURS) -> Peer:
    facts = dict(info.library_facts(library))
    return Peer(name, facts["build"], f"this tree, build id {facts['build id']}", str(library))


def in_modes(ours: Peer) -> list[Peer]:
    """The same library in each other mode; research is left out, which writes a trace."""
    names = [name for name in modes.MODES if name in modes.MEASURED]
    return [replace(ours, name=name, environment={**ours.environment, "HAKMEM_MODE": name}) for name in names]


def _record() -> dict[str, Peer]:
    """Those that are still made of what they were made of then."""
    try:
        kept: dict[str, dict[str, Any]] = json.loads(_RECORD.read_text())
        return {
            name: Peer(**peer)
            for name, peer in kept.items()
            if name in _SOURCES and peer.pop(_MADE_OF, "") == sources.digest(_SOURCES[name])
        }
    except (OSError, ValueError, TypeError, AttributeError):
        return {}


def _write(record: dict[str, Peer]) -> None:
    _RECORD.parent.mkdir(parents=True, exist_ok=True)
    unfinished = _RECORD.with_suffix(".tmp")
    kept = {name: {**asdict(peer), _MADE_OF: sources.digest(_SOURCES[name])} for name, peer in record.items()}
    unfinished.write_text(json.dumps(kept, indent=1) + "\n")
    unfinished.replace(_RECORD)


def known(names: Sequence[str]) -> list[Peer]:
    """Those that have been fetched of what would be fetched today, and still serve, or were found not to be had. What
    the system installs and upgrades is asked again whether it is there, and what version it is."""

    def is_there(peer: Peer | None) -> bool:
        if peer is None or isinstance(_SOURCES.get(peer.name), (sources.LibC, sources.Debian)):
            return False
        return bool(peer.missing) or not prove(peer)

    record = _record()
    return [record[name] for name in names if is_there(record.get(name))]


def fetch(names: Sequence[str], progress: Callable[[str], None]) -> list[Peer]:
    """Installs, downloads or builds each. One that cannot be had says why; none raises."""
    found = []
    for name in names:
        progress(f"fetching {name}")
        try:
            peer = _SOURCES[name].fetch(name, KEPT)
        except (OSError, zipfile.BadZipFile) as error:
            peer = Peer(name, "", "", missing=str(error))
        if not peer.missing:
            reason = prove(peer)
            if reason:
                peer = Peer(peer.name, peer.version, peer.source, peer.library, peer.environment, reason)
        if peer.missing:
            progress(f"{name} cannot be had: {peer.missing} (`hakmem bench peers {name}` tries again)")
        found.append(peer)
        _write({**_record(), name: peer})
    return found


def prove(peer: Peer) -> str:
    """Why the library would not serve a program, or not as it is meant to; empty if it does."""
    if not peer.library:
        return ""
    environment = {**os.environ, **peer.environment, "LD_PRELOAD": peer.library}
    try:
        done = subprocess.run(
            ["/bin/cat", "/proc/self/maps"], env=environment, stdin=subprocess.DEVNULL, capture_output=True, text=True,
            timeout=_REQUIRED_SECONDS, check=False,
        )  # fmt: skip
    except subprocess.TimeoutExpired:
        return f"/bin/cat does not end within {_REQUIRED_SECONDS} s"
    if done.returncode != 0:
        return f"/bin/cat ends with {done.returncode}: {done.stderr.strip()[-200:]}"
    if os.path.realpath(peer.library) not in done.stdout:
        return "the loader does not map it"
    source = _SOURCES.get(peer.name)
    works = source.works if isinstance(source, sources.Crate) else ""
    if works and sources.asked(Path(peer.library), works, peer.environment) != "1":
        return f"{works}() does not say so"
    return ""
