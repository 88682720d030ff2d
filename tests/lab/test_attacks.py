"""What a run of an attack came to, and what is written of all."""

from __future__ import annotations

import tempfile
import unittest
from pathlib import Path

from hakmem_bench import attack_section, attacks
from hakmem_bench.attacks import AT_EXIT, AT_FREE, AT_ONCE, CHECKED, HANGS, LATER, MISSED, NO_EFFECT, REPORTED, Attacked
from hakmem_bench.model import HARDENED, OURS, Peer


def _result() -> Attacked:
    peers = [
        Peer(OURS, "1", "here", "lib.so"),
        Peer(CHECKED, "1", "here", "lib.so"),
        Peer(HARDENED, "1", "here", "hardened.so"),
        Peer("weak", "2", "there"),
        Peer("strong|er", "3", "there"),
        Peer("gone", "", "", missing="not to be had"),
    ]
    outcomes = {
        "double-free 40 immediate": {
            OURS: [AT_ONCE] * 3,
            CHECKED: [AT_ONCE] * 3,
            HARDENED: [AT_ONCE] * 3,
            "weak": [MISSED] * 3,
            "strong|er": [AT_ONCE] * 3,
        },
        "double-free 40 delayed": {
            OURS: [MISSED] * 3,
            CHECKED: [AT_ONCE] * 3,
            HARDENED: [AT_ONCE, MISSED, AT_ONCE],
            "weak": [MISSED] * 3,
            "strong|er": [AT_FREE, LATER, AT_FREE],
        },
        "leak 40 lost": {
            OURS: [NO_EFFECT] * 3,
            CHECKED: [MISSED] * 3,
            HARDENED: [MISSED] * 3,
            "weak": [AT_EXIT, HANGS, AT_EXIT],
            "strong|er": [REPORTED] * 3,
        },
    }
    return Attacked({"date": "today", "libc": "glibc"}, peers, outcomes)


class Judge(unittest.TestCase):
    def test_it_is_stopped_after_what_it_has_told_last(self) -> None:
        for letters, outcome in (("S", AT_ONCE), ("SD", AT_FREE), ("SDF", LATER), ("SDFH", LATER), ("SDFHE", AT_EXIT)):
            self.assertEqual(attacks.judge(-6, letters, ""), outcome)
            self.assertEqual(attacks.judge(1, letters, "fatal"), outcome)

    def test_who_goes_on_has_reported_it_or_not(self) -> None:
        self.assertEqual(attacks.judge(0, "SDFHE", "hakmem: a leak\n"), REPORTED)
        self.assertEqual(attacks.judge(0, "SDFHE", "\n"), MISSED)
        self.assertEqual(attacks.judge(0, "SDFNE", ""), NO_EFFECT)

    def test_what_ends_before_the_bug_is_no_attack(self) -> None:
        self.assertEqual(attacks.judge(0, "", ""), MISSED)
        self.assertEqual(attacks.judge(-11, "", ""), AT_ONCE)

    def test_the_worst_of_several_counts(self) -> None:
        self.assertEqual(attacks.typical([AT_ONCE, LATER, AT_FREE]), LATER)
        self.assertEqual(attacks.typical([AT_ONCE, MISSED, AT_ONCE]), MISSED)
        self.assertEqual(attacks.typical([MISSED, HANGS]), HANGS)


class Section(unittest.TestCase):
    def test_it_counts_each_allocator(self) -> None:
        text = attack_section.section(_result())
        self.assertIn("3 attacks, each 3 times; the worst run counts (date: today; libc: glibc)", text)
        self.assertIn("| hakmem | 1 | **2** | 1 | 0 | 0 | 0 | 0 | 1 | 1 | 0 |", text)
        self.assertIn("| weak | 2 | **0** | 0 | 0 | 0 | 0 | 0 | 0 | 2 | 1 |", text)
        self.assertIn("| strong\\|er | 3 | **3** | 1 | 0 | 1 | 0 | 1 | 0 | 0 | 0 |", text)
        self.assertIn("| gone |  | missing |", text)

    def test_it_counts_each_bug_and_names_what_is_missed(self) -> None:
        text = attack_section.section(_result())
        self.assertIn("| double-free | 2 | 1 | 1 | **2** | **2** | 0 |", text)
        self.assertIn("hakmem, hardened misses: `double-free 40 delayed`, `leak 40 lost`.", text)
        self.assertIn("hakmem, check mode misses: `leak 40 lost`.", text)
        self.assertNotIn("weak misses", text)

    def test_hakmem_stands_first_then_who_stops_most(self) -> None:
        names = [peer.name for peer in attacks.allocators(_result())]
        self.assertEqual(names, [OURS, HARDENED, CHECKED, "strong|er", "weak"])

    def test_of_a_result_without_the_hardened_library_nothing_is_said_of_it(self) -> None:
        result = _result()
        result.peers = [peer for peer in result.peers if peer.name != HARDENED]
        self.assertNotIn(HARDENED, attack_section.section(result))

    def test_it_takes_its_place_in_the_document(self) -> None:
        document = f"before\n{attack_section.BEGIN}old\n{attack_section.END}after\n"
        once = attack_section.put_into(document, _result())
        self.assertNotIn("old", once)
        self.assertTrue(once.startswith("before\n") and once.endswith("after\n"))
        self.assertEqual(attack_section.put_into(once, _result()), once)


class File(unittest.TestCase):
    def test_written_is_read(self) -> None:
        with tempfile.TemporaryDirectory() as directory:
            path = Path(directory, "below", "result.json")
            _result().write(path)
            self.assertTrue(attacks.is_result(path))
            self.assertEqual(attacks.read(path), _result())

    def test_other_files_are_none(self) -> None:
        with tempfile.TemporaryDirectory() as directory:
            path = Path(directory, "other.json")
            self.assertFalse(attacks.is_result(path))
            for text in ("", "[]", '{"schema": {"name": "hakmem bench", "version": 1}}'):
                path.write_text(text)
                self.assertFalse(attacks.is_result(path))


if __name__ == "__main__":
    unittest.main()
