"""Names for the calls of a profile: functions, files and lines from the programs and libraries that were mapped."""

from __future__ import annotations

import bisect
import os
import re
import shutil
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path

from hakmem_cli import symbolize
from hakmem_observe import elf
from hakmem_observe.heap_profile import HeapProfile, scale
from hakmem_observe.stacks import Amount, Call, Frame, Module, Profile, Site

DEBUG = Path("/usr/lib/debug/.build-id")
_DISCRIMINATOR = re.compile(r" \(discriminator \d+\)$")
_WHERE = re.compile(r"(.*):(\d+|\?)")
_DELETED = " (deleted)"


def _frame(place: str) -> Frame | None:
    """A line of addr2line's."""
    function, _, where = place.partition(" at ")
    if not function or function.startswith("??"):
        return None
    found = _WHERE.fullmatch(_DISCRIMINATOR.sub("", where))
    if not found or found[1].startswith("??"):
        return Frame(function)
    return Frame(function, found[1], int(found[2]) if found[2].isdigit() else 0)


def names_in(binary: elf.Binary, addresses: Iterable[int]) -> dict[int, tuple[Frame, ...]]:
    """addr2line's names where there is debug information. Elsewhere it takes the nearest symbol, however far that is:
    there only a symbol that covers the address counts."""
    source = DEBUG / binary.build_id[:2] / f"{binary.build_id[2:]}.debug"
    path = source if binary.build_id and source.is_file() else binary.path
    told = symbolize.ask(str(path), addresses) if shutil.which(symbolize.TOOL) else {}
    known: dict[int, tuple[Frame, ...]] = {}
    functions: list[symbolize.Function] | None = None
    for address in addresses:
        frames = tuple(frame for place in told.get(address, []) if (frame := _frame(place)))
        if not frames or not frames[-1].file:
            if functions is None:
                functions = sorted({*elf.functions(path), *elf.functions(binary.path)})
            name = symbolize.covering(functions, address)
            # addr2line's name is the demangled one.
            frames = () if name is None else (Frame(frames[-1].function if frames else name),)
        known[address] = frames
    return known


def _is_running(module: Module, running: Path) -> bool:
    try:
        return os.readlink(running) == module.path
    except OSError:
        return False


def _build_id(binary: elf.Binary | None) -> str:
    return binary.build_id if binary is not None else ""


def _is_another(binary: elf.Binary, module: Module) -> bool:
    """Has it been built anew, or does another machine have it? Of what has no build id that is not known."""
    return binary.build_id != "" and not binary.build_id.startswith(module.build_id)  # a long one is cut


def _find(module: Module, roots: Iterable[Path], running: Path | None) -> elf.Binary | None:
    """The file that the process ran; if there is only another of its name, that."""
    if not module.path.startswith("/"):
        return None
    if module.path.endswith(_DELETED):
        # What has its name by now is another file. The program's own can be read while it runs.
        return elf.binary(running) if running is not None and _is_running(module, running) else None
    other = None
    for root in roots:
        binary = elf.binary(root / module.path.lstrip("/"))
        if binary is not None and not _is_another(binary, module):
            return binary
        other = other or binary
    return other


def _notes(
    modules: Iterable[Module], binaries: dict[str, elf.Binary | None], others: set[str], now_ms: int
) -> list[str]:
    deleted, unread, another, newer, gone = [], [], [], [], []
    for path, module in {module.path: module for module in modules}.items():
        binary = binaries.get(path)
        if path in others:
            another.append(path)
        elif path.startswith("/") and binary is None:
            (deleted if path.endswith(_DELETED) else unread).append(path.removesuffix(_DELETED))
        elif binary is not None and not os.path.exists(binary.path):
            gone.append(path)
        elif binary is not None and binary.changed_ms > now_ms and not (binary.build_id and module.build_id):
            newer.append(path)
    notes = [f"cannot be read, no names from there: {', '.join(unread)}"] if unread else []
    if deleted:
        notes.append(f"replaced or removed since the process loaded it, no names from there: {', '.join(deleted)}")
    if another:
        notes.append(f"not of the build that the process ran (by build id), no names from there: {', '.join(another)}")
    if gone:
        notes.append(f"gone while names were looked up, some may be missing: {', '.join(gone)}")
    if newer:
        notes.append(f"newer than the profile, names from there may be wrong: {', '.join(newer)}")
    if shutil.which(symbolize.TOOL) is None:
        notes.append(f"{symbolize.TOOL} is not installed (Debian: binutils): no files and lines")
    return notes


_NOWHERE = Module(0, 0, 0, "")


def resolve(raw: HeapProfile, roots: Iterable[Path] = (Path("/"),), running: Path | None = None) -> Profile:
    """The profile with names and with numbers that stand for all blocks. `roots`: where the process's files are;
    `running`: its program, if it runs."""
    rate = raw.facts["rate"]
    modules = sorted(raw.modules, key=lambda module: module.start) or [_NOWHERE]
    starts = [module.start for module in modules]
    # A stack's addresses are what comes after each call.
    wanted = {address - 1 for site in raw.sampled for address in site.stack if address}
    homes: dict[int, Module] = {}
    for address in wanted:
        at = bisect.bisect_right(starts, address) - 1
        if at >= 0 and address < modules[at].limit:
            homes[address] = modules[at]
    roots = tuple(roots)
    binaries = {module.path: _find(module, roots, running) for module in modules}
    others = {module.path for module in modules if (binary := binaries[module.path]) and _is_another(binary, module)}
    binaries |= dict.fromkeys(others)
    named = _named(homes, binaries)
    # The first is taken for the program's, by pprof too; what is compiled at run time may lie below it.
    main = next((module for module in modules if module.is_of_file), modules[0])
    used = {main, *homes.values()}
    full = {
        module: replace(module, build_id=module.build_id or _build_id(binaries[module.path]))
        for module in (main, *(module for module in modules if module != main))
        if module in used
    }
    calls = {
        address: Call(address, full.get(homes[address]) if address in homes else None, named.get(address, ()))
        for address in wanted
    }
    sites = []
    for site in raw.sampled:
        allocated = scale(site.allocated, rate)
        most = site.allocated if site.allocated.objects else site.live
        freed = [scale(_like(most, count), rate).objects for count in site.lifetimes]
        stack = tuple(calls[address - 1] for address in site.stack if address)
        block_bytes = most.bytes // most.objects if most.objects else 0
        sites.append(Site(stack, scale(site.live, rate), allocated, scale(site.peak, rate), tuple(freed), block_bytes))
    notes = _notes(full, binaries, others, raw.facts["now_ms"])
    if not raw.modules:
        notes.append("the process could not read its own mappings (/proc/self/maps): there are no names")
    if raw.facts["dropped"]:
        notes.append(f"{raw.facts['dropped']} samples were dropped: the profiler's table was full")
    return Profile(
        pid=raw.facts["pid"],
        rate=rate,
        started_ms=raw.facts["started_ms"],
        now_ms=raw.facts["now_ms"],
        dropped=raw.facts["dropped"],
        peak_bytes=raw.facts["peak_bytes"],
        modules=tuple(full.values()),
        sites=tuple(sites),
        notes=tuple(notes),
    )


def _like(amount: Amount, count: int) -> Amount:
    """So many samples of the same average size."""
    return replace(amount, objects=count, bytes=amount.bytes * count // amount.objects if amount.objects else 0)


def _named(homes: dict[int, Module], binaries: dict[str, elf.Binary | None]) -> dict[int, tuple[Frame, ...]]:
    """Each file is asked once for all its addresses."""
    by_file: dict[str, dict[int, int]] = {}
    for address, module in homes.items():
        binary = binaries[module.path]
        own = binary.address(address - module.start + module.offset) if binary else None
        if own is not None:
            by_file.setdefault(module.path, {})[address] = own
    named = {}
    for path, addresses in by_file.items():
        binary = binaries[path]
        assert binary is not None
        known = names_in(binary, sorted(set(addresses.values())))
        named.update({address: known[own] for address, own in addresses.items()})
    return named
