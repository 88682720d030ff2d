"""The arrows between the layers go down only, and conditional compilation stays at the bottom."""

from __future__ import annotations

import re
import unittest
from pathlib import Path

from support import ROOT

SOURCES = ROOT / "src"

STACK = ["base", "os", "config", "arena", "span", "slab", "large", "heap", "api", "override"]
# These stand beside the stack, each on those before it: the heap knows them only through its table of events, which api
# fills.
BESIDE = ["observe", "learn", "check"]

# Headers that are not of a layer, and who may include them.
OUTSIDE = {"hakmem.h": {"api", "override"}, "build_info.h": {"api"}}

CONDITIONAL_LAYERS = {"base", "os"}


def allowed_layers(layer: str) -> set[str]:
    """The layers whose headers a file of this one may include."""
    if layer in BESIDE:
        return {*BESIDE[: BESIDE.index(layer) + 1], *STACK[: STACK.index("heap") + 1]}
    below = set(STACK[: STACK.index(layer) + 1])
    return below | set(BESIDE) if layer == "api" else below


def sources() -> list[Path]:
    return sorted(path for path in SOURCES.rglob("*") if path.suffix in {".c", ".h", ".cpp"})


def directives(path: Path) -> list[tuple[int, str, str]]:
    """Line number, name and the rest of each preprocessor directive."""
    found = []
    for number, line in enumerate(path.read_text().splitlines(), 1):
        directive = re.match(r"\s*#\s*(\w+)\s*(.*)", line)
        if directive:
            found.append((number, directive[1], directive[2].strip()))
    return found


def include_fault(layer: str, header: str) -> str | None:
    """What is wrong with `#include "header"` in that layer."""
    if header in OUTSIDE:
        return None if layer in OUTSIDE[header] else f"{header} is not for {layer}"
    target = Path(header).parts[0]
    if not (SOURCES / header).is_file():
        return f"src/{header} does not exist; headers are named by their path from src"
    if Path(header).suffix != ".h":
        return f"{header} is not a header"
    return None if target in allowed_layers(layer) else f"{layer} must not use {target}"


def is_conditional(name: str, rest: str) -> bool:
    return name in {"if", "ifdef", "ifndef", "elif"} and (name, rest) != ("ifdef", "__cplusplus")


class Layers(unittest.TestCase):
    def assert_none(self, faults: list[str]) -> None:
        if faults:
            self.fail("\n" + "\n".join(faults))

    def test_every_file_is_in_a_layer(self) -> None:
        self.assertTrue(sources())
        layers = {*STACK, *BESIDE}
        self.assert_none([str(path) for path in sources() if path.relative_to(SOURCES).parts[0] not in layers])

    def test_includes_go_down(self) -> None:
        faults = []
        for path in sources():
            layer = path.relative_to(SOURCES).parts[0]
            for number, name, rest in directives(path):
                header = re.match(r'"([^"]+)"', rest) if name == "include" else None
                fault = include_fault(layer, header[1]) if header else None
                if fault:
                    faults.append(f"{path.relative_to(ROOT)}:{number}: {fault}")
        self.assert_none(faults)

    def test_conditional_compilation_only_at_the_bottom(self) -> None:
        faults = []
        for path in sources():
            if path.relative_to(SOURCES).parts[0] in CONDITIONAL_LAYERS:
                continue
            lines = directives(path)
            if path.suffix == ".h" and [name for _, name, _ in lines[:2]] == ["ifndef", "define"]:
                lines = lines[2:]  # the include guard
            for number, name, rest in lines:
                if is_conditional(name, rest):
                    faults.append(f"{path.relative_to(ROOT)}:{number}: #{name} {rest}")
        self.assert_none(faults)
