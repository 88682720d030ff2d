"""A heap profile as the tools see it: sites with named calls; numbers stand for all blocks, not for the samples."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from hakmem_observe.names import simple

LIFETIMES = ("< 1 ms", "< 10 ms", "< 100 ms", "< 1 s", "< 10 s", "< 100 s", "< 1000 s", "longer")
VALUES = ("live", "allocated", "peak")
"""What there is of each site; also the words of `--what`."""

ALLOCATORS = "|".join(
    (
        r"(__libc_|__)?(malloc|calloc|realloc|reallocarray|memalign|valloc|pvalloc|posix_memalign|aligned_alloc)",
        r"(std::pmr::)?operator new(\[\])?",
        r"(__rustc(\[\w+\])?::)?__(rust|rdl|rg)_(alloc|alloc_zeroed|realloc)",
        r"<?(alloc|std)::alloc::.*",
        r"(std::|__gnu_cxx::)?(__)?(new_allocator|allocator|allocator_traits)(<.*>)?::allocate",
        r"hak_.*",
    )
)
"""Functions that hand memory on to those who asked for it: at the end of a stack they say nothing."""
_ALLOCATOR = re.compile(f"(?:{ALLOCATORS})")
_LIBRARY = re.compile(r"libhakmem[-\w]*\.so[.\d]*")


@dataclass(frozen=True)
class Amount:
    objects: int = 0
    bytes: int = 0

    def __add__(self, other: Amount) -> Amount:
        return Amount(self.objects + other.objects, self.bytes + other.bytes)


@dataclass(frozen=True)
class Frame:
    """A function in a stack; without a name it is a place in a file that has no symbols."""

    function: str
    file: str = ""
    line: int = 0

    @property
    def place(self) -> str:
        return f"{self.file}:{self.line}" if self.file and self.line else self.file

    @property
    def short_place(self) -> str:
        name = self.file.rpartition("/")[2]
        return f"{name}:{self.line}" if name and self.line else name

    @property
    def name(self) -> str:
        """The function without its parameters and templates, as pprof shows it."""
        return simple(self.function)


@dataclass(frozen=True)
class Module:
    """A mapped part of a program or library with code in it."""

    start: int
    limit: int
    offset: int
    path: str
    build_id: str = ""
    """In hexadecimal; "": not known, or it has none."""

    @property
    def name(self) -> str:
        return self.path.removesuffix(" (deleted)").rpartition("/")[2]

    @property
    def is_of_file(self) -> bool:
        return self.path.startswith("/")

    @property
    def is_allocator(self) -> bool:
        return _LIBRARY.fullmatch(self.name) is not None


@dataclass(frozen=True)
class Call:
    """An address in a stack (of the call, not of what comes after it), and what is known of it, innermost first."""

    address: int
    module: Module | None = None
    frames: tuple[Frame, ...] = ()

    @property
    def shown(self) -> tuple[Frame, ...]:
        return self.frames or (Frame(self._unnamed()),)

    def _unnamed(self) -> str:
        if self.module is None or not self.module.name:  # compiled at run time, into memory of no file
            return f"{self.address:#x}"
        return f"{self.module.name}+{self.address - self.module.start + self.module.offset:#x}"


@dataclass(frozen=True)
class Site:
    """Blocks of about one size that were allocated by one stack of calls, innermost first."""

    calls: tuple[Call, ...]
    live: Amount
    allocated: Amount
    peak: Amount
    lifetimes: tuple[int, ...] = (0,) * len(LIFETIMES)
    block_bytes: int = 0

    def amount(self, what: str) -> Amount:
        return {"live": self.live, "allocated": self.allocated, "peak": self.peak}[what]

    def frames(self) -> list[Frame]:
        """Innermost first, from the function that asked for the memory; never empty."""
        calls = list(self.calls)
        while len(calls) > 1 and calls[0].module is not None and calls[0].module.is_allocator:
            calls.pop(0)
        frames = [frame for call in calls for frame in call.shown]
        while len(frames) > 1 and _ALLOCATOR.fullmatch(frames[0].name):
            frames.pop(0)
        return frames or [Frame("(no stack)")]


@dataclass(frozen=True)
class Profile:
    pid: int
    rate: int
    started_ms: int
    now_ms: int
    dropped: int
    peak_bytes: int
    modules: tuple[Module, ...]
    sites: tuple[Site, ...]
    notes: tuple[str, ...] = field(default=())
    """What the reader should know: files that are gone, names that were not to be had."""

    def total(self, what: str) -> Amount:
        return sum_of(site.amount(what) for site in self.sites)

    @property
    def default(self) -> str:
        """Which value to show if nobody says: live bytes, unless all were freed."""
        return next((what for what in ("live", "peak", "allocated") if self.total(what).bytes), "live")

    @property
    def main(self) -> Module | None:
        """The program's own: the first of a file."""
        return next((module for module in self.modules if module.is_of_file), None)

    @property
    def program(self) -> str:
        return self.main.path if self.main else ""


def sum_of(amounts: Iterable[Amount]) -> Amount:
    return sum(amounts, Amount())


def by_frame(profile: Profile) -> Iterator[tuple[Frame, list[Site]]]:
    """Sites by the function and line that asked for the memory."""
    groups: dict[Frame, list[Site]] = {}
    for site in profile.sites:
        groups.setdefault(site.frames()[0], []).append(site)
    yield from groups.items()
