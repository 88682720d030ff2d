"""Runs the tests of the directory named, in the interpreter of a private environment; a JSON object a line says how
each ended, for `hakmem test`."""

from __future__ import annotations

import json
import sys
import unittest


class Result(unittest.TextTestResult):
    def startTest(self, test: unittest.TestCase) -> None:
        super().startTest(test)
        self.bad = len(self.failures) + len(self.errors)

    def stopTest(self, test: unittest.TestCase) -> None:
        super().stopTest(test)
        skipped = next((reason for one, reason in self.skipped if one is test), None)
        passed = self.bad == len(self.failures) + len(self.errors)
        outcome = "skipped" if skipped is not None else "passed" if passed else "failed"
        print(json.dumps({"test": str(test), "outcome": outcome, "reason": skipped or ""}), flush=True)


suite = unittest.defaultTestLoader.discover(sys.argv[1])
runner = unittest.TextTestRunner(stream=sys.stderr, verbosity=2, resultclass=Result)
runner.run(suite)
print(json.dumps({"test": "", "outcome": "end", "reason": ""}))
