"""Runs the quick classes of the files named."""

from __future__ import annotations

import sys
import unittest

from listing import classes

suite = unittest.TestSuite(
    unittest.defaultTestLoader.loadTestsFromTestCase(test)
    for name in sys.argv[1:]
    for test in classes(f"test_{name}")
    if test.quick
)
result = unittest.TextTestRunner(verbosity=2).run(suite)
sys.exit(0 if result.wasSuccessful() and result.testsRun > 0 and not result.skipped else 1)
