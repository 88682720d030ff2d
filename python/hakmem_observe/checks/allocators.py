"""Other allocators, by the names that give them away."""

from __future__ import annotations

import re

# Of shared libraries.
_LIBRARY = re.compile(
    r"lib(jemalloc|tcmalloc(?:_\w+)?|mimalloc(?:-\w+)?|snmallocshim\S*?|rpmalloc\w*|hoard|tbbmalloc\w*|ltalloc|nedmalloc"
    r"|hardened_malloc\S*?|scudo\S*?)\.so"
)

# Of functions that give memory, in a program that has the allocator inside or calls it by its own names.
_FUNCTIONS = (
    (
        "jemalloc",
        re.compile(r"(_rjem_|je_|_)?(mallocx|rallocx|sdallocx)|(_rjem_|je_|jemalloc_)(malloc|calloc|realloc)"),
    ),
    ("mimalloc", re.compile(r"mi_(malloc|calloc|realloc|heap_malloc|zalloc)(_aligned)?")),
    ("tcmalloc", re.compile(r"tc_(malloc|calloc|realloc|new|newarray)")),
    ("snmalloc", re.compile(r"sn_(malloc|rust_alloc)|rust_alloc_snmalloc")),
    ("rpmalloc", re.compile(r"rp(malloc|calloc|realloc|aligned_alloc)")),
    ("TBB's allocator", re.compile(r"scalable_(malloc|calloc|realloc)")),
    ("dlmalloc", re.compile(r"dl(malloc|calloc|realloc)")),
)


def of_library(name: str) -> str | None:
    """The allocator in a file of this name."""
    found = _LIBRARY.match(name)
    return found[1] if found else None


def of_function(name: str) -> str | None:
    """The allocator that has a function of this name."""
    return next((allocator for allocator, pattern in _FUNCTIONS if pattern.fullmatch(name)), None)
