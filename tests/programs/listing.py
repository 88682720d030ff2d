"""What there is to run, as JSON: a line for each test. With --quick, the names of the files that CI runs."""

from __future__ import annotations

import importlib
import json
import sys
import unittest
from collections.abc import Iterator
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))

from programs import ProgramTest  # noqa: E402


def classes(module: str) -> list[type[ProgramTest]]:
    """Those of a file that have tests."""
    members = vars(importlib.import_module(module)).values()
    found = [member for member in members if isinstance(member, type) and issubclass(member, ProgramTest)]
    names = unittest.defaultTestLoader.getTestCaseNames
    return [member for member in found if member.__module__ == module and names(member)]


def modules() -> list[str]:
    return sorted(path.stem for path in Path(__file__).resolve().parent.glob("test_*.py"))


def _what(test: type[ProgramTest], method: str) -> str:
    text = getattr(test, method).__doc__ or method.removeprefix("test_").replace("_", " ")
    return " ".join(text.split())


def rows() -> Iterator[dict[str, object]]:
    for module in modules():
        for test in classes(module):
            for method in unittest.defaultTestLoader.getTestCaseNames(test):
                yield {
                    "file": module.removeprefix("test_"),
                    "test": f"{module}.{test.__name__}.{method}",
                    "program": test.title or test.__name__,
                    "what": _what(test, method),
                    "version": test.version,
                    "packages": test.packages,
                    "pypi": test.pypi,
                    "quick": test.quick,
                    "seconds": test.seconds,
                }


def main() -> None:
    if sys.argv[1:] == ["--quick"]:
        print(";".join(sorted({str(row["file"]) for row in rows() if row["quick"]})), end="")
        return
    for row in rows():
        print(json.dumps(row))


if __name__ == "__main__":
    main()
