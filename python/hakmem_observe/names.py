"""Names of functions and files as they are shown."""

from __future__ import annotations

import functools
import re

_MOST = 1 << 16
"""Of names that are remembered: a profile has each in thousands of stacks."""


def _without_parameters(function: str) -> str:
    """`f<int>(char const*) const` is `f<int>`; what looks like no list of parameters at the end stays."""
    text = re.sub(r"( const| volatile|&| \[clone [^\]]*\])+$", "", function)
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
_BRACKETS = re.compile(r"operator(?:<<=?|>>=?|<=>|<=|>=|->\*?|<|>)|[<>]")


def _without_templates(function: str) -> str:
    """Operators keep their signs."""
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
    """`void shop::add<int>(char const*)` is `shop::add`."""
    name = _without_parameters(function)
    if "<" not in name and " " not in name:
        return name
    name = _without_templates(name)
    if "operator" in name:
        return name
    return name.replace(_ANONYMOUS, "(anonymous)").rpartition(" ")[2]
