"""What an ELF file says of itself, as far as preloading goes."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from elftools.elf.dynamic import DynamicSegment
from elftools.elf.elffile import ELFFile

from hakmem_cli.say import CannotError
from hakmem_observe import locate
from hakmem_observe.elf import UNREADABLE, is_too_large, opened


@dataclass(frozen=True)
class Elf:
    machine: str
    bits: int
    interpreter: str | None  # None: static, or a shared library
    needed: tuple[str, ...]
    defined: frozenset[str]  # names of functions and objects
    undefined: frozenset[str]
    exported: frozenset[str]  # of the defined ones
    sections: frozenset[str]
    has_control: bool  # hak_control is in it, by its name or by what stands there


def read(path: Path) -> Elf:
    try:
        with path.open("rb") as file:
            return _read(opened(file), path)
    except OSError as error:
        raise CannotError(f"{path}: {error.strerror}") from error
    except UNREADABLE as error:
        raise CannotError(f"{path}: a damaged ELF file: {error or type(error).__name__}") from error


def _read(elf: ELFFile, path: Path) -> Elf:
    interpreter = None
    needed: list[str] = []
    segment: Any
    table: Any
    for segment in elf.iter_segments():
        if segment["p_type"] == "PT_INTERP":
            interpreter = segment.get_interp_name()
        if isinstance(segment, DynamicSegment):
            tags: Any = segment.iter_tags("DT_NEEDED")
            needed = [tag.needed for tag in tags]
    names: dict[bool, set[str]] = {True: set(), False: set()}
    exported: set[str] = set()
    for section in (".dynsym", ".symtab"):
        table = elf.get_section_by_name(section)
        if table is None or is_too_large(table):
            continue
        for symbol in table.iter_symbols():
            if symbol["st_info"]["type"] not in ("STT_FUNC", "STT_OBJECT", "STT_NOTYPE", "STT_LOOS"):
                continue
            is_defined = symbol["st_shndx"] != "SHN_UNDEF"
            names[is_defined].add(symbol.name)
            if is_defined and section == ".dynsym":
                exported.add(symbol.name)
    return Elf(
        machine=elf.get_machine_arch(),
        bits=elf.elfclass,
        interpreter=interpreter,
        needed=tuple(needed),
        defined=frozenset(names[True]),
        undefined=frozenset(names[False]),
        exported=frozenset(exported),
        sections=frozenset(section.name for section in elf.iter_sections()),
        has_control=locate.SYMBOL in names[True] or locate.value_in_data(path) is not None,
    )
