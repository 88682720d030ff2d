"""Runs the tests of the module whose file is named; a JSON object a line says how each ended, for `hakmem test`."""

from __future__ import annotations

import json
import os
import sys
import unittest
from pathlib import Path

# What a test or its program prints is no line of ours: it goes where the tests' own words go.
_TOLD = os.fdopen(os.dup(1), "w")
os.dup2(2, 1)


def _tell(test: object, outcome: str, reason: str = "") -> None:
    print(json.dumps({"test": str(test), "outcome": outcome, "reason": reason}), file=_TOLD, flush=True)


class Result(unittest.TextTestResult):
    def startTest(self, test: unittest.TestCase) -> None:
        super().startTest(test)
        self.bad = self._bad()

    def stopTest(self, test: unittest.TestCase) -> None:
        super().stopTest(test)
        skipped = next((reason for one, reason in self.skipped if getattr(one, "test_case", one) is test), None)
        passed = self.bad == self._bad()
        outcome = "failed" if not passed else "skipped" if skipped is not None else "passed"
        _tell(test, outcome, skipped or "")

    def addError(self, test: unittest.TestCase, err: object) -> None:
        super().addError(test, err)  # type: ignore[arg-type]
        if _is_fixture(test):
            _tell(test, "failed")

    def addSkip(self, test: unittest.TestCase, reason: str) -> None:
        super().addSkip(test, reason)
        if _is_fixture(test):
            _tell(test, "skipped", reason)

    def _bad(self) -> int:
        return len(self.failures) + len(self.errors) + len(self.unexpectedSuccesses)


def _is_fixture(test: object) -> bool:
    """The set-up or the end of a class or a module, which is not started and stopped as tests are."""
    return not isinstance(test, unittest.TestCase)


module = Path(sys.argv[1])
suite = unittest.defaultTestLoader.discover(str(module.parent), module.name)
result = unittest.TextTestRunner(stream=sys.stderr, verbosity=2, resultclass=Result).run(suite)
_tell("", "end")
sys.exit(not result.wasSuccessful())
