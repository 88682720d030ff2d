"""From allocations that are known to the files: names and totals are what they were, and pprof sees the same."""

from __future__ import annotations

import dataclasses
import gzip
import os
import random
import re
import shutil
import struct
import subprocess
import tempfile
import unittest
import zlib
from collections.abc import Iterable, Iterator
from pathlib import Path
from unittest import mock

import fake_profile
import fake_stacks

from hakmem_cli import symbolize
from hakmem_cli.say import CannotError
from hakmem_observe import collapsed, elf, locate, pprof, pprof_schema, profile_files, symbols
from hakmem_observe.heap_profile import NotAProfileError, scale
from hakmem_observe.stacks import Amount, Module, Profile, Site, sum_of

RATE = 16384
# As sys/sdt.h lays out a probe, with one word for each of its names.
PROBE = r"""
__asm__(".pushsection .note.stapsdt,\"\",\"note\"\n"
        ".balign 4\n.4byte 8,24+2+2+1,3\n.asciz \"stapsdt\"\n"
        ".8byte 0x1000,0,0\n.asciz \"a\"\n.asciz \"b\"\n.asciz \"\"\n.balign 4\n"
        ".popsection");
int main(void) { return 0; }
"""


def totals_by_go(file: Path) -> dict[str, int]:
    """As `go tool pprof -raw` lists them: the sums of its columns."""
    done = subprocess.run(
        ["go", "tool", "pprof", "-raw", file], capture_output=True, text=True, timeout=300, check=True
    )
    samples = done.stdout.partition("Samples:\n")[2].partition("Locations\n")[0].splitlines()
    names = [word.partition("/")[0] for word in samples[0].split()]
    rows = [line.partition(":")[0].split() for line in samples[1:] if re.match(r"\s*\d+ ", line)]
    return {name: sum(int(row[at]) for row in rows) for at, name in enumerate(names)}


class Files(unittest.TestCase):
    @classmethod
    def setUpClass(cls) -> None:
        temporary = tempfile.TemporaryDirectory()
        cls.addClassCleanup(temporary.cleanup)
        cls.directory = Path(temporary.name)
        cls.program = fake_profile.build(cls.directory)
        text, cls.made = fake_profile.leak(cls.program, RATE, seed=2)
        cls.heap = cls.directory / "leak.heap"
        cls.heap.write_text(text)
        cls.profile = profile_files.read(cls.heap)
        cls.pprof = cls.directory / "leak.pb.gz"
        cls.pprof.write_bytes(pprof.encode(cls.profile))

    def by_hand(self, value: str) -> Amount:
        amounts = (Amount(getattr(one, value), getattr(one, value) * one.size) for one in self.made)
        return sum_of(scale(amount, RATE) for amount in amounts)

    def test_totals_are_those_by_hand(self) -> None:
        for what, value in (("live", "live"), ("allocated", "allocated"), ("peak", "peak")):
            self.assertEqual(self.profile.total(what), self.by_hand(value), what)
        # And near the truth: 100,000 names of 48 bytes, one buffer, one table.
        truth = 100_000 * 48 + 2000 + (8 << 20)
        self.assertLess(abs(self.profile.total("live").bytes / truth - 1), 0.1)

    def test_what_was_written_is_read_back(self) -> None:
        self.assertEqual(profile_files.read(self.pprof), self.profile)

    def test_what_cannot_be_a_profile_is_not_read(self) -> None:
        large = self.directory / "core"
        with large.open("wb") as file:
            file.truncate((1 << 30) + 1)
        for path, why in ((large, "larger than 1 GiB"), (Path("/dev/zero"), "neither a file nor a pipe")):
            with self.assertRaisesRegex(CannotError, f"{path}: {why}"):
                profile_files.read(path)

    def test_lifetimes_are_numbers(self) -> None:
        site = self.profile.sites[0]
        for bad in (-9, 10**400):
            sites = (dataclasses.replace(site, lifetimes=(bad, *[0] * (len(site.lifetimes) - 1))),)
            data = pprof.encode(dataclasses.replace(self.profile, sites=sites))
            with self.assertRaisesRegex(NotAProfileError, "damaged"):
                pprof.decode(data)

    def test_names_that_are_no_utf_8(self) -> None:
        """The file is found; what pprof gets is UTF-8."""
        program = Path(os.fsdecode(os.fsencode(self.directory) + b"/caf\xe9"))
        shutil.copy(self.program, program)
        text = self.heap.read_text().replace(str(self.program), str(program))
        other = self.directory / "other.heap"
        other.write_bytes(os.fsencode(text))
        profile = profile_files.read(other)
        names = {frame.name for site in profile.sites for frame in site.frames()}
        self.assertEqual(names, {frame.name for site in self.profile.sites for frame in site.frames()})
        paths = {module.path for module in pprof.decode(pprof.encode(profile)).modules}
        self.assertIn(f"{self.directory}/caf?", paths)

    def test_damaged_programs_have_no_names(self) -> None:
        """Whatever the damage."""
        whole = self.program.read_bytes()
        path = self.directory / "damaged"
        chance = random.Random(1)
        for _ in range(300):
            data = bytearray(whole)
            for _ in range(8):
                # Headers lie at both ends.
                at = chance.choice(
                    (chance.randrange(1024), chance.randrange(len(data)), len(data) - 1 - chance.randrange(3000))
                )
                data[at] = chance.choice((0, 1, 0x7F, 0xFF, chance.randrange(256)))
            path.write_bytes(data)
            elf.binary(path)
            elf.functions(path)

    def test_go_sees_the_same(self) -> None:
        if shutil.which("go") is None:
            self.skipTest("go is not installed")
        live, allocated, peak = (self.by_hand(value) for value in ("live", "allocated", "peak"))
        common = {
            "inuse_objects": live.objects,
            "inuse_space": live.bytes,
            "alloc_objects": allocated.objects,
            "alloc_space": allocated.bytes,
        }
        self.assertEqual(totals_by_go(self.heap), common)
        peaks = {"peak_objects": peak.objects, "peak_space": peak.bytes}
        self.assertEqual(totals_by_go(self.pprof), {**common, **peaks})
        top = subprocess.run(
            ["go", "tool", "pprof", "-top", "-lines", self.pprof],
            capture_output=True,
            text=True,
            timeout=300,
            check=True,
        ).stdout
        self.assertIn("Type: inuse_space", top)
        self.assertRegex(top, r"copy_of .*leaker\.c:14")

    def test_calls_have_names_with_inlined_ones(self) -> None:
        stacks = {";".join(f"{f.function} {f.short_place}" for f in site.frames()) for site in self.profile.sites}
        self.assertIn("copy_of leaker.c:14;open_session leaker.c:28;serve leaker.c:49;main leaker.c:56", stacks)
        self.assertIn("load_table leaker.c:41;main leaker.c:55", stacks)
        self.assertEqual([module.name for module in self.profile.modules], ["leaker"])
        notes = subprocess.run(["readelf", "-n", self.program], capture_output=True, text=True, check=True).stdout
        self.assertIn(f"Build ID: {self.profile.modules[0].build_id}\n", notes)

    def test_collapsed(self) -> None:
        lines = collapsed.encode(self.profile, "live").splitlines()
        self.assertEqual(len(lines), 2)
        self.assertTrue(any(line.startswith("main;serve;open_session;copy_of ") for line in lines), lines)
        self.assertEqual(sum(int(line.rpartition(" ")[2]) for line in lines), self.profile.total("live").bytes)

    def again(self, *strip: str, debug: Path | None = None) -> Profile:
        """With another file in the program's place: the addresses stay."""
        whole = self.directory / "whole"
        shutil.copy2(self.program, whole)
        self.addCleanup(whole.replace, self.program)
        subprocess.run(["strip", *strip, self.program], check=True)
        with mock.patch.object(symbols, "DEBUG", debug or self.directory / "none"):
            return profile_files.read(self.heap)

    def test_symbols_alone(self) -> None:
        names = {frame.function for site in self.again("--strip-debug").sites for frame in site.frames()}
        self.assertEqual(names, {"main", "serve", "open_session", "load_table"})

    def test_no_symbols(self) -> None:
        """Names of others, however near, are none."""
        frames = {frame.function for site in self.again("--strip-all").sites for frame in site.frames()}
        self.assertTrue(all(re.fullmatch(r"leaker\+0x[0-9a-f]+", name) for name in frames), frames)

    def test_debug_file_by_build_id(self) -> None:
        build_id = self.profile.modules[0].build_id
        file = self.directory / "debug" / build_id[:2] / f"{build_id[2:]}.debug"
        file.parent.mkdir(parents=True)
        subprocess.run(["objcopy", "--only-keep-debug", self.program, file], check=True)
        found = self.again("--strip-all", debug=self.directory / "debug")
        self.assertEqual([site.frames() for site in found.sites], [site.frames() for site in self.profile.sites])

    def test_program_that_is_gone(self) -> None:
        whole = self.directory / "whole"
        self.program.replace(whole)
        self.addCleanup(whole.replace, self.program)
        gone = profile_files.read(self.heap)
        self.assertEqual(gone.total("live"), self.profile.total("live"))
        self.assertIn("cannot be read, no names from there", gone.notes[0])

    def test_program_that_was_built_anew(self) -> None:
        """The file that has its name by now is another, whose names would be wrong."""
        path = str(self.program)
        text = self.heap.read_text().replace(f"{path}\n", f"{path} (deleted)\n")
        found = profile_files.decode(text.encode(), "x")
        self.assertEqual(found.total("live"), self.profile.total("live"))
        frames = {frame.function for site in found.sites for frame in site.frames()}
        self.assertTrue(all(re.fullmatch(r"leaker\+0x[0-9a-f]+", name) for name in frames), frames)
        self.assertEqual({module.build_id for module in found.modules}, {""})
        note = f"replaced or removed since the process loaded it, no names from there: {path}"
        self.assertEqual(found.notes, (note,))

    def test_program_of_another_build(self) -> None:
        """The process's own build id tells, whatever the file is called and however old it is."""
        path = str(self.program)
        first = next(line for line in self.heap.read_text().splitlines() if line.endswith(path))
        start = first.partition("-")[0]

        def found(build_id: str) -> Profile:
            line = f"# build-id 0x{start} {build_id}\nMAPPED_LIBRARIES:"
            return profile_files.decode(self.heap.read_text().replace("MAPPED_LIBRARIES:", line).encode(), "x")

        own, other = found(self.profile.modules[0].build_id), found("0a1b2c")
        self.assertEqual([site.frames() for site in own.sites], [site.frames() for site in self.profile.sites])
        self.assertEqual(own.notes, ())
        frames = {frame.function for site in other.sites for frame in site.frames()}
        self.assertTrue(all(re.fullmatch(r"leaker\+0x[0-9a-f]+", name) for name in frames), frames)
        self.assertEqual({module.build_id for module in other.modules}, {"0a1b2c"})
        note = f"not of the build that the process ran (by build id), no names from there: {path}"
        self.assertEqual(other.notes, (note,))
        self.assertEqual(other.total("live"), self.profile.total("live"))

    def test_program_that_was_built_anew_and_runs(self) -> None:
        copy = self.directory / "copy"
        shutil.copy2(self.program, copy)
        text = self.heap.read_text().replace(f"{self.program}\n", f"{copy} (deleted)\n")
        with subprocess.Popen([copy, "1", "1"], stdout=subprocess.PIPE) as process:
            try:
                assert process.stdout is not None
                process.stdout.readline()
                copy.unlink()
                found = profile_files.decode(text.encode(), "x", running=Path(f"/proc/{process.pid}/exe"))
            finally:
                process.kill()
        self.assertEqual([site.frames() for site in found.sites], [site.frames() for site in self.profile.sites])
        self.assertEqual((found.modules[0].build_id, found.notes), (self.profile.modules[0].build_id, ()))

    def test_program_that_goes_meanwhile(self) -> None:
        """Its files are seen by way of the process, which may end while names are looked up."""
        whole = self.directory / "whole"
        self.addCleanup(whole.replace, self.program)

        def ask(module: str, offsets: Iterable[int]) -> dict[int, list[str]]:
            self.program.replace(whole)
            return {}

        with mock.patch.object(symbolize, "ask", ask):
            gone = profile_files.read(self.heap)
        self.assertEqual(gone.total("live"), self.profile.total("live"))
        self.assertEqual(gone.notes, (f"gone while names were looked up, some may be missing: {self.program}",))

    def test_build_id_beside_static_probes(self) -> None:
        """Their notes have the number of build ids, under another owner."""
        source, file = self.directory / "probe.c", self.directory / "probe"
        source.write_text(PROBE)
        subprocess.run(["cc", "-Wl,--build-id", "-o", file, source], check=True)
        notes = subprocess.run(["readelf", "-n", file], capture_output=True, text=True, check=True).stdout
        self.assertIn("stapsdt", notes)
        found = elf.binary(file)
        assert found is not None
        self.assertIn(f"Build ID: {found.build_id}\n", notes)

    def test_headers_without_end_are_none(self) -> None:
        """Their number may stand in the first of them, and the file be as long as that: nearly all of it a hole."""
        data = bytearray(self.program.read_bytes())
        count = (1 << 17) + 1
        at = len(data)
        struct.pack_into("<Q", data, 0x28, at)  # e_shoff
        struct.pack_into("<HHH", data, 0x3A, 64, 0, 0)  # e_shentsize, e_shnum, e_shstrndx
        file = self.directory / "endless"
        file.write_bytes(data + bytes(32) + struct.pack("<Q", count) + bytes(24))
        os.truncate(file, at + count * 64)
        self.assertIsNone(elf.binary(file))
        self.assertIsNone(locate.value_in_data(file))
        self.assertIsNone(locate.value_of(file, "main"))

    def test_damaged_binaries_are_none(self) -> None:
        data = self.program.read_bytes()
        numbers = random.Random(1)
        file = self.directory / "damaged"
        for _ in range(200):
            at = numbers.randrange(len(data))
            file.write_bytes(
                data[:at] + bytes([numbers.randrange(256)]) * 8 + data[at + 8 : numbers.randrange(at, len(data) + 1)]
            )
            found = elf.binary(file)
            if found is not None:
                symbols.names_in(found, [0x1000, 0x1200])


class Pprof(unittest.TestCase):
    def test_large_and_hostile_names_come_back(self) -> None:
        profile = fake_stacks.profile(300, hostile=True)
        self.assertEqual(pprof.decode(pprof.encode(profile)), profile)

    def test_many_modules_are_no_more_looks_at_the_sites(self) -> None:
        class Counted(tuple[Site, ...]):
            looks = 0

            def __iter__(self) -> Iterator[Site]:
                type(self).looks += 1
                return super().__iter__()

        profile = fake_stacks.profile(20)
        more = tuple(Module(at << 20, (at + 1) << 20, 0, f"/lib/{at}.so") for at in range(1 << 24, (1 << 24) + 100))
        many = dataclasses.replace(profile, modules=(*profile.modules, *more), sites=Counted(profile.sites))
        message = pprof_schema.Message.FromString(gzip.decompress(pprof.encode(many)))
        self.assertLess(Counted.looks, 10)
        self.assertEqual([one.id for one in message.mapping if one.has_functions], [1])

    def test_one_that_grows_is_refused(self) -> None:
        compressor = zlib.compressobj(1, wbits=31)
        data = b"".join(compressor.compress(bytes(1 << 20)) for _ in range(257)) + compressor.flush()
        with self.assertRaisesRegex(NotAProfileError, "^a profile of more than 256 MiB$"):
            pprof.decode(data)

    def test_damage_is_one_error(self) -> None:
        data = pprof.encode(fake_stacks.profile(20))
        with self.assertRaisesRegex(NotAProfileError, "truncated"):
            pprof.decode(data[: len(data) // 2])
        plain = gzip.decompress(data)
        numbers = random.Random(1)
        for _ in range(500):
            damaged = bytearray(plain)
            for _ in range(3):
                damaged[numbers.randrange(len(damaged))] = numbers.randrange(256)
            try:
                pprof.decode(gzip.compress(bytes(damaged), 1))
            except NotAProfileError:
                pass

    def test_others_are_refused(self) -> None:
        other = pprof_schema.Message()
        other.string_table.append("")
        with self.assertRaisesRegex(NotAProfileError, "not one that hakmem wrote"):
            pprof.decode(gzip.compress(other.SerializeToString()))
