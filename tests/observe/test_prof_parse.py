"""The library's text: what is right is read to the last number, all else is one line of error."""

from __future__ import annotations

import math
import random
import unittest

from hakmem_observe import collapsed, pprof
from hakmem_observe.heap_profile import NotAProfileError, lacks_mappings, parse, scale, with_mappings
from hakmem_observe.stacks import Amount
from hakmem_observe.symbols import resolve

GOOD = """\
heap profile: 2: 1024 [3: 1536] @ heap_v2/524288
# hakmem-profile 1 pid=17 rate=524288 started_ms=1790000000000 now_ms=1790000001000 dropped=4 peak_bytes=99 news=1
2: 1024 [3: 1536] @ 0x4011a2 0x401199
# peak 1 512 lifetimes 1 0 0 2 0 0 0 9
# a comment of a later version
0: 0 [1: 16] @
# build-id 0x400000 0a1b

MAPPED_LIBRARIES:
00400000-00402000 r--p 00000000 fe:00 10093922                   /srv/a program
00402000-00403000 r-xp 00002000 fe:00 10093922                   /srv/a program
7f0000000000-7f0000001000 r-xp 00000000 00:00 0
"""


class Parse(unittest.TestCase):
    def test_all_that_is_there(self) -> None:
        profile = parse(GOOD)
        self.assertEqual(profile.facts["pid"], 17)
        self.assertEqual(profile.facts["dropped"], 4)
        first, second = profile.sampled
        self.assertEqual(first.stack, (0x4011A2, 0x401199))
        self.assertEqual((first.live, first.allocated, first.peak), (Amount(2, 1024), Amount(3, 1536), Amount(1, 512)))
        self.assertEqual(first.lifetimes, (1, 0, 0, 2, 0, 0, 0, 9))
        self.assertEqual((second.stack, second.peak), ((), Amount()))
        self.assertEqual([module.path for module in profile.modules], ["/srv/a program", ""])
        self.assertEqual(profile.modules[0].offset, 0x2000)
        self.assertEqual([module.build_id for module in profile.modules], ["0a1b", ""])

    def test_cut_off_anywhere(self) -> None:
        """But for the end of the mappings: there a line less is a mapping less."""
        complete = GOOD.index("fe:00 10093922", GOOD.index("r-xp"))
        for length in range(complete):
            with self.subTest(length=length), self.assertRaises(NotAProfileError):
                parse(GOOD[:length])

    def test_a_process_may_not_see_its_mappings(self) -> None:
        start, maps, mappings = GOOD.partition("MAPPED_LIBRARIES:\n")
        blind = start + maps + "# no mappings\n"
        profile = resolve(parse(blind))
        self.assertIn("could not read its own mappings", profile.notes[-2])
        self.assertEqual([call.address for call in profile.sites[0].calls], [0x4011A1, 0x401198])
        self.assertEqual(pprof.decode(pprof.encode(profile)).sites, profile.sites)
        self.assertIn("0x4011a1", collapsed.encode(profile, "live"))
        self.assertTrue(lacks_mappings(blind.encode()) and not lacks_mappings(GOOD.encode()))
        self.assertEqual(with_mappings(blind.encode(), mappings.encode()), GOOD.encode())
        self.assertEqual(with_mappings(GOOD.encode(), b"7f"), GOOD.encode())

    def test_later_words_are_passed_over(self) -> None:
        for word in ("²", 5000 * "9", "x"):
            self.assertNotIn("news", parse(GOOD.replace("news=1", f"news={word}")).facts)

    def check(self, old: str, new: str, line: str) -> None:
        self.assertIn(old, GOOD)
        with self.assertRaisesRegex(NotAProfileError, line):
            parse(GOOD.replace(old, new, 1))

    def test_what_is_wrong_is_named(self) -> None:
        self.check("heap profile", "heap profiles", "not a heap profile")
        self.check("# hakmem-profile 1", "# other", "not one that hakmem wrote")
        self.check("# hakmem-profile 1", "# hakmem-profile 2", "version 2")
        self.check("rate=524288", "rate=1", "one sample in 524288 bytes, line 2 in 1")
        self.check("pid=17 ", "", "line 2: no pid=")
        self.check("dropped=4", "dropped=x", "dropped=x: not a number")
        self.check("\n2: 1024 [3", "\n2: 1024 (3", "line 3: .*not a line of a site")
        self.check("\n2: 1024 [3", "\n-2: 1024 [3", "line 3")
        self.check("0: 0 [1: 16]", "0: 7 [1: 16]", "line 6: bytes of no objects")
        self.check("\n2: 1024 [3", "\n2: 99999999999999999999 [3", "line 3")
        self.check("lifetimes 1 0", "lifetimes 0", "line 4: .*not a line of a site's peak")
        self.check("# peak", "# peaks\n# peak", "line 4")
        self.check("now_ms=1790000001000", "now_ms=999999999999999999", "now_ms=9{18}: legal are up to 9000000000000")
        self.check("0a1b", "0a1", "line 7: .*not a line of a build id")
        self.check("r-xp", "r-xp x", "not a line of /proc/PID/maps")

    def test_foreign_text(self) -> None:
        for text in ("", "\n", "heap_v2/524288\n  t*: 1: 2 [0: 0]\n", "root:x:0:0\n", "\0\1\2\n", "{}\n"):
            with self.subTest(text=text), self.assertRaisesRegex(NotAProfileError, "not a heap profile"):
                parse(text)

    def test_noise(self) -> None:
        """Whatever a byte becomes, it is read or refused."""
        numbers = random.Random(1)
        for _ in range(3000):
            letters = list(GOOD)
            letters[numbers.randrange(len(letters))] = chr(numbers.choice([0, 10, 32, 48, 57, 93, 120, 255, 0x2028]))
            try:
                parse("".join(letters))
            except NotAProfileError:
                pass


class Scale(unittest.TestCase):
    def test_as_pprof(self) -> None:
        factor = 1 / (1 - math.exp(-512 / 524288))
        self.assertEqual(scale(Amount(2, 1024), 524288), Amount(int(2 * factor), int(1024 * factor)))
        self.assertEqual(scale(Amount(1, 1 << 30), 524288), Amount(1, 1 << 30))

    def test_edges(self) -> None:
        self.assertEqual(scale(Amount(3, 30), 1), Amount(3, 30))
        self.assertEqual(scale(Amount(3, 0), 4096), Amount())
        self.assertEqual(scale(Amount(), 4096), Amount())
        self.assertEqual(scale(Amount(1, 1), 10**17), Amount(10**17, 10**17))
