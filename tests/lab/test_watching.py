"""What is written of the cost of watching."""

from __future__ import annotations

import unittest

from hakmem_bench import counting, runner, watching
from hakmem_bench.model import OURS, ROOT, Counts, Peer, Result


def _result(broken: str = "") -> Result:
    """A tenth more with each kind, on everything; one count that failed."""
    measured = watching.peers_of(Peer(OURS, "1", "here", "lib.so"))
    result = Result({"date": "today"}, measured)
    for test in (*watching.PROGRAMS, *watching.BARE):
        for i, peer in enumerate(measured):
            status = "exit 1: no" if (test.name, peer.name) == (broken, "live page") else "ok"
            result.counts.append(Counts(test.name, peer.name, 50 * (1 + i / 10), status=status))
    return result


class Section(unittest.TestCase):
    def test_it_has_a_row_for_each_test_and_their_mean(self) -> None:
        text = watching.section(_result())
        self.assertIn("| Perl, hashes | 1.1000 | 1.2000 | 1.3000 |", text)
        self.assertEqual(text.count("| geometric mean | **1.1000** | **1.2000** | **1.3000** |"), 2)
        self.assertIn("128 bytes take 50.0 instructions", text)

    def test_what_failed_is_told(self) -> None:
        text = watching.section(_result("Perl, hashes"))
        self.assertIn("| Perl, hashes | 1.1000 | 1.2000 | exit 1: no |", text)
        self.assertIn("| geometric mean | **1.1000** | **1.2000** | – (2 of 3) |", text)

    def test_it_takes_its_place_in_the_document(self) -> None:
        document = (ROOT / "docs" / "observability.md").read_text()
        self.assertEqual((document.count(watching.BEGIN), document.count(watching.END)), (1, 1))
        once = watching.put_into(document, _result())
        self.assertEqual(watching.put_into(once, _result()), once)

    def test_results_are_known(self) -> None:
        self.assertTrue(watching.is_result(_result()))
        self.assertFalse(watching.is_result(Result({}, [Peer(OURS, "", ""), Peer("glibc", "", "")])))

    def test_the_same_programs_but_for_what_is_watched(self) -> None:
        plain, *watched = watching.peers_of(Peer(OURS, "1", "here", "lib.so"))
        for peer, added in zip(watched, watching.KINDS.values()):
            self.assertEqual(peer.environment, {**plain.environment, **added})
            self.assertEqual(peer.library, plain.library)


class Counting(unittest.TestCase):
    def test_programs_of_the_system_are_counted_too(self) -> None:
        counted = counting.Counted("true", ("/bin/true", "{}"), 1, 2)
        found = counting.count(counted, Peer("glibc", "", ""))
        self.assertEqual(found.status, "ok")
        self.assertTrue(runner.PROGRAMS.is_absolute())

    def test_who_fails_says_why_not_valgrind(self) -> None:
        counted = counting.Counted("fails", ("/bin/sh", "-c", "echo no memory >&2; exit 3", "{}"), 1, 2)
        self.assertEqual(counting.count(counted, Peer("glibc", "", "")).status, "exit 3: no memory")


if __name__ == "__main__":
    unittest.main()
