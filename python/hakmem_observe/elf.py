"""What is needed of an ELF file to name the addresses in it."""

from __future__ import annotations

import os
import struct
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any

from elftools.common.exceptions import ELFError
from elftools.construct.core import ConstructError
from elftools.elf.elffile import ELFFile
from elftools.elf.sections import NoteSection, SymbolTableSection

from hakmem_cli.symbolize import Function

_SYMBOL = struct.Struct("<IBBHQQ")
_FUNCTIONS = (2, 10)
"""STT_FUNC and STT_GNU_IFUNC."""
UNREADABLE = (
    OSError,
    ELFError,
    ConstructError,
    ValueError,
    KeyError,
    AttributeError,
    TypeError,
    OverflowError,
    AssertionError,
    MemoryError,
    struct.error,
)
"""Of a file that is not there, or no ELF file, or a damaged one: pyelftools checks little of what it reads."""


_MOST_HEADERS = 1 << 17
_MOST_SYMBOLS = 3_000_000
_MOST_STRINGS = 1 << 29


def opened(file: IO[bytes]) -> ELFFile:
    """A file may say that it has more headers than anybody would wait for, and be as long as that with holes."""
    found = ELFFile(file)
    if max(found.num_sections(), found.num_segments()) > _MOST_HEADERS:
        raise ELFError("too many headers")
    return found


def is_too_large(table: Any) -> bool:
    """More symbols than any program has."""
    return table.num_symbols() > _MOST_SYMBOLS


@dataclass
class Binary:
    path: Path
    changed_ms: int = 0
    """When the file was written last."""
    build_id: str = ""
    segments: list[tuple[int, int, int]] = field(default_factory=list)
    """Of each loaded one: offset in the file, bytes, address."""

    def address(self, offset: int) -> int | None:
        """Of a byte of the file, in the file's own numbering, which addr2line and symbols use."""
        for start, size, address in self.segments:
            if start <= offset < start + size:
                return offset - start + address
        return None


def binary(path: Path) -> Binary | None:
    """None: there is no such file, or it is no ELF file."""
    try:
        if not path.is_file():
            return None
        with path.open("rb") as file:
            elf = opened(file)
            found = Binary(path, os.fstat(file.fileno()).st_mtime_ns // 1_000_000)
            for segment in elf.iter_segments("PT_LOAD"):
                found.segments.append((segment["p_offset"], segment["p_filesz"], segment["p_vaddr"]))
            for section in elf.iter_sections():
                if isinstance(section, NoteSection):
                    for note in section.iter_notes():
                        # A type means what the note's owner says: static probes have one with the same number.
                        is_id = note["n_name"] == "GNU" and note["n_type"] == "NT_GNU_BUILD_ID"
                        if is_id and not found.build_id:
                            found.build_id = str(note["n_desc"])
            return found
    except UNREADABLE:
        return None


def _functions(path: Path) -> Iterator[Function]:
    with path.open("rb") as file:
        elf = opened(file)
        for name in (".symtab", ".dynsym"):
            section = elf.get_section_by_name(name)
            if not isinstance(section, SymbolTableSection) or section["sh_type"] == "SHT_NOBITS":
                continue
            names = elf.get_section(section["sh_link"])
            if is_too_large(section) or names["sh_size"] > _MOST_STRINGS:
                continue
            strings = names.data()
            for at, info, _, _, value, size in _SYMBOL.iter_unpack(section.data()):
                if info & 15 in _FUNCTIONS and value and size:
                    yield value, size, strings[at : strings.index(b"\0", at)].decode(errors="replace")


def functions(path: Path) -> list[Function]:
    """Of each in the tables of symbols, by address. None of a file that is gone by now."""
    try:
        return sorted(_functions(path))
    except UNREADABLE:
        return []
