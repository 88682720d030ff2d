"""Names of functions and files as they are shown."""

from __future__ import annotations

import functools
import re

_MOST = 1 << 16
"""Of names that are remembered: a profile has each in thousands of stacks."""


def _without_parameters(function: str) -> str:
    """`f<int>(char const*) const` is `f<int>`; what looks like no list of parameters at the end stays."""
    text = re.sub(r"(?: const| volatile| &{1,2}| noexcept| \[clone [^\]]*\])+$", "", function)
    if not text.endswith(")") or text.endswith("operator()"):
        return function
    depth = 0
    for at in range(len(text) - 1, -1, -1):
        depth += (text[at] == ")") - (text[at] == "(")
        if depth == 0:
            head = text[:at]
            return head if head and not head.endswith((" ", "operator")) else function
    return function


_ANONYMOUS = "(anonymous namespace)"
_BRACKETS = re.compile(r"operator(?:<<=?|>>=?|<=>|<=|>=|->\*?|<|>)|->|[<>]")
_EMPTIED = re.compile(r"::(?=::|$)")
"""What is left of Rust's `sort::<T>` without its types."""
_RUST_STANDARD = re.compile(r"(?:<(?:[&*(\[]|dyn |mut |const )*|<[^:]* as )?(?:alloc|core|std)::")
"""A function, or one of a standard type, or of a standard trait for a type that has no path."""


def _without_templates(function: str) -> str:
    """Operators keep their signs; the arrow before what a function returns is no bracket."""
    kept, depth, at = "", 0, 0
    for found in _BRACKETS.finditer(function):
        if depth == 0:
            kept += function[at : found.start()]
            at = found.start()
        if found[0] == "<":
            depth += 1
        elif found[0] == ">":
            depth -= 1
            at = found.end()
            if depth < 0:
                return function
    return kept + function[at:] if depth == 0 else function


@functools.lru_cache(_MOST)
def simple(function: str) -> str:
    """`void shop::add<int>(char const*)` is `shop::add`. What begins with a type stays, as Rust's `<T as Trait>::f`: it
    says which function it is."""
    if function.startswith("<"):
        return function
    name = _without_parameters(function)
    if "<" not in name and " " not in name:
        return name
    name = _EMPTIED.sub("", _without_templates(name))
    if "operator" in name:
        return name
    return name.replace(_ANONYMOUS, "(anonymous)").rpartition(" ")[2]


def is_standard(function: str) -> bool:
    """Of the standard library of C++ or Rust? In C++, where functions have parameters, `core` may be anybody's."""
    if simple(function).startswith(("std::", "__gnu_cxx::")):
        return True
    return _without_parameters(function) == function and _RUST_STANDARD.match(function) is not None
