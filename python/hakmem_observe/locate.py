"""Where a process has its `hak_control`: by the symbol of the library that it maps, or of the program itself if it is
linked with the archive; without symbols, by what stands there."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from elftools.elf.constants import P_FLAGS

from hakmem_observe import elf, procfs
from hakmem_observe.elf import UNREADABLE
from hakmem_observe.errors import AbsentError, DeniedError
from hakmem_observe.layout import MAGIC, control_offsets
from hakmem_observe.memory import Memory
from hakmem_observe.procfs import Mapping

SYMBOL = "hak_control"

_MOST_DATA = 16 << 20

_Loads = list[tuple[int, int, int]]
"""Of each loaded segment: offset in the file, bytes there, and address."""


def is_library(mapping: Mapping) -> bool:
    return mapping.name.startswith("libhakmem") and ".so" in mapping.name


def files(mappings: list[Mapping]) -> dict[tuple[int, str], list[Mapping]]:
    """What is mapped of each file, by its inode and path."""
    found: dict[tuple[int, str], list[Mapping]] = {}
    for mapping in mappings:
        if mapping.inode != 0 and mapping.path.startswith("/"):
            found.setdefault((mapping.inode, mapping.path), []).append(mapping)
    return found


def paths(pid: int, mapping: Mapping) -> Iterator[Path]:
    """Ways to the file that is mapped there, best first: the kernel's own link (root only), then the name in the
    process's view of the file system."""
    seen = procfs.directory(pid)
    yield seen / "map_files" / f"{mapping.start:x}-{mapping.end:x}"
    if not mapping.deleted:
        yield Path(f"{seen}/root{mapping.path}")


def _loads(segments: Iterable[Any]) -> _Loads:
    return [(segment["p_offset"], segment["p_filesz"], segment["p_vaddr"]) for segment in segments]


def value_of(path: Path, name: str) -> tuple[int, _Loads] | None:
    """The symbol's value, and what the file has loaded. None: no symbol."""
    try:
        with path.open("rb") as file:
            found = elf.opened(file)
            loads = _loads(found.iter_segments("PT_LOAD"))
            for section in (".dynsym", ".symtab"):
                table: Any = found.get_section_by_name(section)
                is_sound = table is not None and not elf.is_too_large(table)
                symbols = table.get_symbol_by_name(name) if is_sound else None
                for symbol in symbols or []:
                    if symbol["st_shndx"] != "SHN_UNDEF":
                        return symbol["st_value"], loads
    except UNREADABLE:
        return None
    return None


def value_in_data(path: Path) -> tuple[int, _Loads] | None:
    """As `value_of`, of a program without symbols: where its data have a control block."""
    try:
        with path.open("rb") as file:
            segments: list[Any] = list(elf.opened(file).iter_segments("PT_LOAD"))
            for segment in segments:
                if segment["p_flags"] & P_FLAGS.PF_W and segment["p_filesz"] <= _MOST_DATA:
                    for at in control_offsets(segment.data()):
                        return segment["p_vaddr"] + at, _loads(segments)
    except UNREADABLE:
        return None
    return None


def _bias(mapped: list[Mapping], loads: _Loads) -> int | None:
    """What the loader added to the file's addresses."""
    for mapping in mapped:
        for offset, size, address in loads:
            if offset - offset % 4096 <= mapping.offset < offset + max(size, 1):
                return mapping.start - (address + mapping.offset - offset)
    return None


def _by_file(pid: int, mapped: list[Mapping], more: list[Path]) -> int | None:
    for path in (*more, *paths(pid, mapped[0])):
        if not more and not os.path.exists(path):
            continue
        # strip takes a program's symbols, and not those that a library exports.
        found = value_of(path, SYMBOL) or (value_in_data(path) if more else None)
        bias = _bias(mapped, found[1]) if found is not None else None
        if found is not None and bias is not None:
            return found[0] + bias
    return None


def _by_magic(memory: Memory, mapped: list[Mapping]) -> int | None:
    """For a file that is gone: its data are still there."""
    for mapping in mapped:
        size = mapping.end - mapping.start
        data = memory.read(mapping.start, size) if mapping.permissions.startswith("rw") and size <= _MOST_DATA else None
        for at in control_offsets(data or b""):
            return mapping.start + at
    return None


def _version(mapping: Mapping) -> str:
    """Of the library, as its file's name says; empty if it does not."""
    found = re.search(r"\.so\.(\d+\.\d+[.\d]*)$", mapping.name)
    return found[1] if found else ""


def control_address(pid: int, memory: Memory) -> tuple[int, str]:
    """And the library's version, if that can be said."""
    found = files(procfs.mappings(pid))
    libraries = [mapped for mapped in found.values() if is_library(mapped[0])]
    for mapped in libraries:
        address = _by_file(pid, mapped, [])
        # The name may lead to another file by now.
        if address is None or memory.read(address, len(MAGIC)) != MAGIC:
            address = _by_magic(memory, mapped)
        if address is not None:
            return address, _version(mapped[0])
    exe = procfs.directory(pid) / "exe"
    try:
        program = os.readlink(exe).removesuffix(" (deleted)")
    except PermissionError as error:
        raise DeniedError(
            f"process {pid}: its program may not be looked at; legal for its own user and root"
        ) from error
    except OSError:
        program = ""
    for mapped in found.values():
        if mapped[0].path == program:
            address = _by_file(pid, mapped, [exe])
            if address is not None:
                return address, ""
    if libraries:
        raise AbsentError(
            f"process {pid}: {libraries[0][0].path} has no {SYMBOL}: a version of hakmem before there were statistics"
        )
    raise AbsentError(
        f"process {pid} ({procfs.command(pid)[:60]}) does not use hakmem; start it with `hakmem run -- PROGRAM`, "
        "or ask `hakmem doctor`"
    )
