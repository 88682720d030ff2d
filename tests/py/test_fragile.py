"""All code of the hot functions lies in the section FRAGILE, where a signal handler's wrapper looks for it."""

from __future__ import annotations

import re
import unittest

from support import LIBRARY, ROOT, output_of

_FUNCTION = re.compile(r"^(?P<head>[A-Za-z][^\n;={}]*\([^;{}]*\))\n\{\n(?P<body>.*?)^\}", re.MULTILINE | re.DOTALL)

# What is inlined into them, and into others.
_HOT = re.compile(
    r"\b(?:hot_(?:malloc|malloc_or|malloc_of|pop|pop_of|push|free|free_by|free_sized)|delay_hot_exchange|free_by|delete)\("
)

# Of the path from the kernel into a handler and back.
_AROUND_HANDLERS = ("run", "interrupted_begin", "interrupted_end", "interrupt_begin", "interrupt_end")
_AROUND_HANDLERS += ("os_interrupted_at", "freeze_show_twin", "view_close")


def hot_functions() -> dict[str, str]:
    """The heads of the functions into which a hot function is inlined, by name."""
    found: dict[str, str] = {}
    for path in sorted((ROOT / "src").rglob("*.c*")):
        for function in _FUNCTION.finditer(path.read_text()):
            inlined = "ALWAYS_INLINE" in function["head"] and "FRAGILE" not in function["head"]
            if _HOT.search(function["body"]) and not inlined:
                name = re.search(r"(\w+)\(", function["head"])
                assert name is not None
                found[f"{path.name}: {name[1]}"] = function["head"]
    return found


def sections_of_symbols() -> dict[str, set[str]]:
    """The sections of the library's functions, by name: several may have one."""
    table = output_of("objdump", "-t", str(LIBRARY))
    line = re.compile(r" F (\S+)\s+\S+\s+(?:\.hidden )?(\S+)$", re.MULTILINE)
    sections: dict[str, set[str]] = {}
    for section, name in line.findall(table):
        sections.setdefault(name, set()).add(section)
    return sections


class Fragile(unittest.TestCase):
    def test_hot_functions_are_declared_so(self) -> None:
        functions = hot_functions()
        self.assertIn("libc.c: malloc", functions)
        self.assertIn("malloc.c: realloc_otherwise", functions)
        self.assertIn("hardened.c: hardened_malloc", functions)
        self.assertIn("hardened.c: hardened_free", functions)
        self.assertIn("linked.c: hak_linked_new_or_throw", functions)
        self.assertIn("linked.c: hak_linked_delete_sized", functions)
        for name, head in functions.items():
            self.assertIn("FRAGILE", head, name)

    def test_the_linker_put_them_together(self) -> None:
        sections = sections_of_symbols()
        for name in ("malloc", "free", "hak_malloc", "hak_free", *_AROUND_HANDLERS):
            if name in sections or name in ("malloc", "free"):  # the others may have been inlined
                self.assertIn("hak_fragile", sections[name], name)
        self.assertIn("hak_fragile", sections["run"])


if __name__ == "__main__":
    unittest.main()
