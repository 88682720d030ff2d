"""Statistics as they are written: what is read of them, and what each kind of damage is told as."""

from __future__ import annotations

import contextlib
import io
import json
import tempfile
import unittest
from pathlib import Path

from hakmem_cli.say import CannotError
from hakmem_observe.snapshot import decode_series, from_json, is_series, parse_series, read_series

ONE = {"schema": "hakmem-stats", "version": 1, "library": "0.1.0", "pid": 7, "unix_ms": 1000, "uptime_ms": 5}


def one(**more: object) -> dict[str, object]:
    return {**ONE, **more}


class Reading(unittest.TestCase):
    def test_keeps_what_it_does_not_know(self) -> None:
        told = one(memory={"new_bytes": 3, "soft_limit_bytes": None}, learner={"profiles": 2}, future=[1])
        taken = from_json(told, "x")
        self.assertEqual(taken.more, {"learner": {"profiles": 2}, "future": [1]})
        again = taken.to_json()
        self.assertEqual({key: again[key] for key in told}, told)

    def test_series(self) -> None:
        lines = [json.dumps(one(pid=pid)) for pid in (1, 2, 3)]
        self.assertEqual([taken.pid for taken in parse_series("\n".join(lines), "x")], [1, 2, 3])
        self.assertEqual(parse_series(json.dumps(ONE, indent=2), "x")[-1].pid, 7)

    def test_series_that_is_torn(self) -> None:
        """A process was killed, a disk was full: what is whole is read, beside what is not and behind it."""
        whole = [json.dumps(one(pid=pid, classes=[{"size": 8}])) for pid in range(5)]
        half, rest = whole[2][:-30], whole[2][-30:]
        for text, pids, torn in (
            (f"{whole[0]}\n{half}", [0], "1 place(s)"),
            (f"{whole[0]}\n{half}\n{whole[3]}\n", [0, 3], "1 place(s)"),
            (f"{whole[0]}\n{half}{whole[3]}\n{whole[4]}\n", [0, 3, 4], "1 place(s)"),
            (f"{whole[0]}\n{half}{whole[3]}\n{rest}\n{whole[4]}", [0, 3, 4], "2 place(s)"),
            (f'{half}\n12, "x"\n{whole[1]}\n12, "x"\n{whole[3]}', [1, 3], "2 place(s)"),
        ):
            said = io.StringIO()
            with self.subTest(text), contextlib.redirect_stderr(said):
                self.assertEqual([taken.pid for taken in parse_series(text, "x")], pids)
                self.assertIn(f"warning: x: torn, cut off or foreign at {torn}", said.getvalue())
                self.assertEqual(said.getvalue().count("\n"), 1)

    def test_a_log_may_come_before_it(self) -> None:
        for log in ("2026-11-28 12:00 started\n", "started\n", "[1, 2]\n", '{"level": "info", "message": "started"}\n'):
            said = io.StringIO()
            text = log + json.dumps(ONE)
            with self.subTest(log), contextlib.redirect_stderr(said):
                self.assertTrue(is_series(text.encode()))
                self.assertEqual([taken.pid for taken in parse_series(text, "x")], [7])
                self.assertIn("warning: x: torn, cut off or foreign at 1 place(s)", said.getvalue())
        self.assertFalse(is_series(b"2026-11-28 12:00 started\n"))

    def test_a_log_may_be_around_it(self) -> None:
        said = io.StringIO()
        line = '{"message": "opened"}\n'
        text = line + json.dumps(ONE) + "\n" + line + "stopped\n" + json.dumps(one(pid=8)) + "\n" + line
        with contextlib.redirect_stderr(said):
            self.assertEqual([taken.pid for taken in parse_series(text, "x")], [7, 8])
            data = b"/tmp/caf\xe9 opened\n" + text.encode()
            self.assertEqual([taken.pid for taken in decode_series(data, "x")], [7, 8])
        self.assertIn("the first: no JSON at line 1, column 1: not an object of hakmem", said.getvalue())

    def check(self, text: str, pattern: str) -> None:
        with self.subTest(text[:60]), self.assertRaisesRegex(CannotError, pattern):
            parse_series(text, "FILE")

    def test_damage_is_named(self) -> None:
        for told, pattern in (
            ([1], 'no "schema"'),
            ({}, 'no "schema"'),
            ({"schema": "hakmem-bench"}, 'its "schema" is "hakmem-bench"; legal is "hakmem-stats"'),
            (one(version=2), '"version" is 2; legal is 1'),
            (one(version="1"), '"version" is "1"'),
            (one(pid="7"), '"pid" is no whole number: "7"'),
            (one(pid=True), '"pid" is no whole number'),
            (one(memory=[]), '"memory" is no object of numbers'),
            (one(memory={"x": "1"}), '"memory" is no object of numbers'),
            (one(classes={}), '"classes" is no list of objects'),
            (one(classes=[3]), '"classes" is no list of objects'),
            (one(classes=[{"size": "x"}]), '"classes": "size" is no number: "x"'),
            (one(locks=[{"name": 3}]), '"locks": "name" is no number'),
            (one(classes=[{"name": "x"}]), '"classes": "name" is no number: "x"'),
            (one(threads=[{"name": "x"}]), '"threads": "name" is no number: "x"'),
        ):
            self.check(json.dumps(told), pattern)
        for number in ("NaN", "Infinity", "-Infinity", "1e999", "1e300", "9" * 5000):
            for place in ("memory", "more"):
                text = json.dumps(one(**{place: {"x": 0}})).replace('"x": 0', f'"x": {number}')
                self.check(text, f"FILE: no JSON at line 1, column 1: {number[:40]} is no number here; legal are up to")
        self.check("", "FILE: the file is empty")
        self.check("{", "FILE: no JSON at line 1, column 2")
        self.check(json.dumps(ONE)[:-1], "FILE: no JSON at line 1")
        self.check("[" * 100000, "FILE: no JSON at line 1, column 1: too deep")
        self.check('{"x": 1\n{"y": 2}', "FILE: no JSON at line 2, column 1")
        self.check("hello", "FILE: no JSON at line 1, column 1")

    def test_files(self) -> None:
        with tempfile.TemporaryDirectory() as directory:
            path = Path(directory) / "f"
            with self.assertRaisesRegex(CannotError, "no such file"):
                read_series(path)
            with self.assertRaisesRegex(CannotError, "a directory"):
                read_series(Path(directory))
            path.write_bytes(b"\xff\xfe\x00")
            with self.assertRaisesRegex(CannotError, "no text"):
                read_series(path)
            with self.assertRaisesRegex(CannotError, "no regular file"):
                read_series(Path("/dev/zero"))


if __name__ == "__main__":
    unittest.main()
