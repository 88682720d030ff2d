"""Bad input gets one line that names the thing and what is legal; and the lab as a whole, on a small run."""

from __future__ import annotations

import contextlib
import io
import json
import os
import re
import sys
import tempfile
import unittest
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from unittest import mock

sys.path.insert(0, str(Path(__file__).resolve().parent))

import refusal
from rich.console import Console

from hakmem_bench import __main__ as command
from hakmem_bench import attack_section, cost_section, documents, lab, peers, provenance, suite
from hakmem_bench.attacks import OWN
from hakmem_bench.model import HARDENED, OURS, ROOT, CannotError, Counts, Peer, Result, Test, read

SLOTS = (("256", 256), ("8192", 8192), ("1m", 1000000))


class BadInput(unittest.TestCase):
    def check(self, words: str, line: str) -> None:
        errors = io.StringIO()
        with contextlib.redirect_stderr(errors):
            self.assertEqual(command.main(words.split()), 2, words)
        self.assertRegex(errors.getvalue(), rf"\Ahakmem: {line}[^\n]*\n\Z")

    def test_each_is_named_with_what_is_legal(self) -> None:
        with tempfile.NamedTemporaryFile("w", suffix=".json") as file:
            file.write("{}")
            file.flush()
            for words, line in (
                ("--peers glibk", "glibk: no such peer; legal are hakmem, glibc,"),
                ("--tests larsen", "larsen: no such test; legal are the groups random_mixed,.* larson-1,"),
                ("--repetitions 0", "argument --repetitions: 0: legal values are 1 to 1000"),
                ("--repetitions x", "argument --repetitions: x: legal values are 1 to 1000"),
                (
                    "--closely glibc",
                    "argument --closely: glibc: legal is a peer with 1 to 1000 repetitions, as glibc:15",
                ),
                ("--closely glibc:0", "argument --closely: glibc:0: legal is a peer with"),
                ("--closely :7", "argument --closely: :7: legal is a peer with"),
                ("--closely hakmem:9", "--closely hakmem:9: no peer of this run; legal are glibc, "),
                ("--closely glibc:9 --peers scudo", "--closely glibc:9: no peer of this run; legal are scudo$"),
                ("--closely glibc:7", "--closely glibc:7: all peers have 7 repetitions; legal are more"),
                ("--closely fast:9 --modes", "--modes --closely fast:9: legal is one of the two"),
                ("--modes --peers glibc", "--modes --peers glibc: legal is one of the two"),
                ("--frob", "unrecognized arguments: --frob; use: hakmem bench"),
                ("compare /no/such /no/such", "/no/such: No such file or directory"),
                (f"docs {file.name}", re.escape(file.name) + ": not a result file that `bench` wrote"),
                ("ab no-such-revision HEAD", "no-such-revision: no such revision; legal is"),
                (
                    "ablate wings",
                    "wings: no such feature; legal are adoption, bigcache,.* learning-elo, learning-evolution",
                ),
                (
                    "ablate learning-elo letters",
                    "learning-elo letters: legal are only parts of learning at once, or none",
                ),
                ("peers glibk", "glibk: no such peer"),
            ):
                with self.subTest(words):
                    self.check(words, line)

    def test_files_of_a_wrong_shape(self) -> None:
        """One line for each, whatever it is that does not fit."""
        whole: dict[str, Any] = json.loads(sorted((ROOT / "bench" / "results").glob("*-full.json"))[-1].read_text())
        whole["tests"][0]["samples"]["hakmem"][0]["seconds"] = "x"
        attacks: dict[str, Any] = {"schema": {"name": "hakmem attacks", "version": 1}, "peers": [], "provenance": {}}
        with tempfile.NamedTemporaryFile("w+", suffix=".json") as file:
            for text in (json.dumps(whole), json.dumps(attacks), "[" * 100_000):
                with self.subTest(text[:40]):
                    file.seek(0)
                    file.truncate()
                    file.write(text)
                    file.flush()
                    self.check(f"docs {file.name}", re.escape(file.name) + ": not a result file that `bench")


class Suite(unittest.TestCase):
    def test_names_are_words_and_unique(self) -> None:
        names = [test.name for test in suite.TESTS]
        self.assertEqual(len(names), len(set(names)))
        for test in suite.TESTS:
            self.assertRegex(test.name, r"\A[a-z0-9-]+\Z")
            self.assertNotIn(test.name, {test.group for test in suite.TESTS})

    def test_programs_of_ours_are_there(self) -> None:
        for test in suite.TESTS:
            if "/" not in test.command[0]:
                self.assertTrue((lab.ROOT / "bench" / f"{test.command[0]}.c").exists(), test.name)

    def test_what_was_frozen_is_there(self) -> None:
        """As it was before anything was tuned to it: what is added has another name."""
        commands = {test.name: " ".join(test.command) for test in suite.TESTS}
        for name, wanted in (
            *((f"random-mixed-{size}", rf"random_mixed \d+ {size} 42") for size in (128, 256, 512, 1024)),
            *((f"random-mixed-{name}-slots", rf"random_mixed \d+ mixed 42 --slots {slots}") for name, slots in SLOTS),
            *((f"larson-{n}", rf"larson 1 8 1000 5000 100 4141 {n}") for n in (1, 2, 8)),
            ("larson-small", "larson 1 8 128 1024 100 4141 2"),
            ("larson-mid", "larson 1 16 1040 1000 100 4141 2"),
            ("larson-minute", "larson 60 8 1000 5000 100 4141 8"),
            *((f"handover-{how}", rf"handover {how} .+") for how in ("oneway", "ring", "manytoone")),
            *((f"sharing-{how}", rf"sharing {how} .+") for how in ("active", "passive")),
            *((f"nodes-{of}", rf"nodes {of} .+") for of in ("tree", "list", "hash")),
            ("vm", r"vm \d+"),
            ("startup", r"startup .+|/bin/true"),
        ):
            self.assertRegex(commands[name], rf"\A(?:{wanted})\Z")
        for name in (
            "lifetimes",
            "short-threads",
            "realloc-string",
            "realloc-inplace",
            "realloc-moving",
            "aligned",
            "calloc",
        ):
            self.assertIn(name, commands)
        programs = {test.name.partition("-")[0] for test in suite.TESTS if test.group == "programs"}
        self.assertEqual(
            programs, {"redis", "cpython", "sqlite", "gcc", "lua", "perl", "ghostscript", "z3", "rocksdb", "node"}
        )

    def test_the_vm_scenario_has_fifty_pairs(self) -> None:
        (vm,) = (test for test in suite.TESTS if test.name == "vm")
        self.assertGreaterEqual(vm.least_repetitions, 50)

    def test_the_quick_run_is_a_part(self) -> None:
        quick = suite.choose(None, quick=True)
        self.assertTrue(10 < len(quick) < len(suite.choose(None, quick=False)))

    def test_names_and_groups_choose(self) -> None:
        chosen = [test.name for test in suite.choose("larson-1,start-up", quick=False)]
        self.assertEqual(chosen, ["larson-1", "startup"])


class Provenance(unittest.TestCase):
    def test_says_what_was_measured_where(self) -> None:
        found = provenance.facts(Path(sys.executable).resolve(), "bench --quick")
        self.assertEqual(found["asked for"], "bench --quick")
        self.assertRegex(found["date"], r"\A20\d\d-\d\d-\d\d \d\d:\d\d UTC\Z")
        self.assertRegex(found["commit"], r"\A(?:[0-9a-f]{12}(?: and uncommitted changes)?|unknown)\Z")
        self.assertRegex(found["build id"], r"\A(?:[0-9a-f]{40}|none)\Z")
        self.assertRegex(found["kernel"], r"\ALinux \d")
        self.assertRegex(found["machine"], r"\A\w+, .")
        self.assertRegex(found["huge pages"], r"\[\w+\]|unknown")
        self.assertRegex(found["memory"], r"\A\d+ GiB\Z")
        for name in ("build", "sources", "libc", "processors"):
            self.assertTrue(found[name], name)
        self.assertRegex(found["workloads"], r"\A[0-9a-f]{16}\Z")
        self.assertEqual(found["peaks"], provenance.peaks())

    def test_a_workload_or_what_measures_it_is_another_when_it_changes(self) -> None:
        with tempfile.TemporaryDirectory() as directory:
            root = Path(directory)
            files = [root / "bench" / name for name in ("larson.c", "args.h", "programs/text.py", "README")]
            for path in files:
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_text("one")
            with mock.patch.object(provenance, "ROOT", root), mock.patch.object(provenance.build, "ROOT", root):
                digests = [provenance.workloads_digest()]
                for path in files:
                    path.write_text("two")
                    digests.append(provenance.workloads_digest())
        self.assertEqual([a != b for a, b in zip(digests, digests[1:])], [True, True, True, False])

    def test_it_says_whether_peaks_are_exact(self) -> None:
        self.assertIn(provenance.peaks(), ("exact", "of wait4"))
        child = os.fork()
        if child == 0:
            told = None
            try:
                refusal.refuse(refusal.PTRACE)
                told = provenance.peaks()
            finally:
                os._exit(0 if told == "of wait4" else 1)
        self.assertEqual(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), 0)
        with mock.patch.object(provenance.runner, "PROGRAMS", Path("/nowhere")):
            self.assertIsNone(provenance.peaks())


class Docs(unittest.TestCase):
    def test_both_pages_and_their_pictures_are_written(self) -> None:
        with tempfile.TemporaryDirectory() as directory:
            root = Path(directory)
            (root / "docs").mkdir()
            facts = {"date": "today", "asked for": "bench --repetitions 3"}
            Result(facts, [Peer("hakmem", "1", "here"), Peer("glibc", "2", "there")]).write(root / "result.json")
            with mock.patch.object(documents, "DOCS", root / "docs"):
                self.assertEqual(command.main(["docs", str(root / "result.json")]), 0)
            written = {path.name: path.read_text() for path in (root / "docs").iterdir()}
        self.assertEqual(sorted(written), ["benchmarks.md", "benchmarks.svg", "memory.md", "memory.svg"])
        self.assertTrue(written["benchmarks.md"].startswith("# Benchmarks"))
        self.assertTrue(written["memory.md"].startswith("# Memory"))
        for page, linked in (("benchmarks", "memory.md"), ("memory", "benchmarks.md")):
            self.assertIn(f"({linked})", written[f"{page}.md"])
            self.assertIn(f"({page}.svg)", written[f"{page}.md"])

    def test_of_safety_only_its_part_is_written(self) -> None:
        with tempfile.TemporaryDirectory() as directory:
            root = Path(directory)
            (root / "docs").mkdir()
            safety = root / "docs" / "safety.md"
            safety.write_text("".join(f"{part.begin}old\n{part.end}" for part in cost_section.PARTS))
            both = [Peer(name, "1", "here") for name in (OURS, HARDENED)]
            Result({"date": "today"}, both).write(root / "result.json")
            with mock.patch.object(documents, "DOCS", root / "docs"):
                self.assertEqual(command.main(["docs", str(root / "result.json")]), 0)
            self.assertEqual([path.name for path in (root / "docs").iterdir()], ["safety.md"])
            self.assertEqual(safety.read_text().count("old\n"), len(cost_section.PARTS) - 1)
            self.assertIn("date: today", safety.read_text())

    def test_what_is_committed_shows_the_results_that_are_committed(self) -> None:
        results = sorted((ROOT / "bench" / "results").glob("*.json"))
        self.assertTrue(results)
        for path in results:
            shown = documents.showing(path, documents.DOCS)
            self.assertTrue(shown)
            for file, text in shown.items():
                with self.subTest(result=path.name, file=file.name):
                    self.assertEqual(file.read_text(), text, f"run `./hakmem bench docs bench/results/{path.name}`")


class Safety(unittest.TestCase):
    """Who runs what, with nothing built and nothing run."""

    def setUp(self) -> None:
        for patch in (
            mock.patch.object(lab.build, "ensure_library", lambda library=lab.build.LIBRARY: library),
            mock.patch.object(lab.build, "build_benchmarks"),
            mock.patch.object(lab.peers, "ours", lambda library, name=OURS: Peer(name, "1", "here", str(library))),
            mock.patch.object(lab, "get_peers", lambda names, console: [Peer(name, "1", "there") for name in names]),
            mock.patch.object(lab.provenance, "facts", return_value={}),
        ):
            patch.start()
            self.addCleanup(patch.stop)

    def measured(self, words: str) -> tuple[list[str], list[Peer]]:
        """The tests and the peers that a command measures."""
        with mock.patch.object(lab, "measure", return_value=Result({}, [])) as measure:
            self.assertEqual(command.main(words.split()), 0)
        tests, measured, *_ = measure.call_args.args
        return [test.name for test in tests], list(measured)

    def test_modes_are_compared_with_balanced(self) -> None:
        _, measured = self.measured("--modes --quick")
        self.assertEqual([peer.name for peer in measured], [OURS, "minimal", "fast", "learning"])
        self.assertEqual(
            [peer.environment for peer in measured], [{}, *({"HAKMEM_MODE": peer.name} for peer in measured[1:])]
        )

    def test_a_part_of_the_learner_is_switched_off_where_the_rest_learns(self) -> None:
        _, measured = self.measured("ablate learning-elo learning-sites --tests larson-1")
        self.assertEqual([peer.name for peer in measured], [OURS, "without elo", "without sites"])
        self.assertEqual({peer.environment["HAKMEM_MODE"] for peer in measured}, {"learning"})
        parts = [peer.environment.get("HAKMEM_LEARN") for peer in measured]
        self.assertEqual(parts, [None, "on:bigcache,sites,classes,evolution", "on:bigcache,classes,elo,evolution"])

    def test_the_hardened_library_is_measured_with_real_programs(self) -> None:
        tests, measured = self.measured("hardened")
        self.assertEqual(tests, [test.name for test in suite.TESTS if test.group == "programs"])
        self.assertEqual([peer.name for peer in measured], [OURS, HARDENED, "scudo", *peers.SECURE])
        libraries = [Path(peer.library).name for peer in measured[:2]]
        self.assertEqual(libraries, ["libhakmem.so", "libhakmem-hardened.so"])

    def test_or_with_those_named(self) -> None:
        self.assertEqual(self.measured("hardened --tests larson-1")[0], ["larson-1"])

    def test_a_plain_run_has_none_of_those_that_give_up_speed(self) -> None:
        for words in ("--tests larson-1", "--quick"):
            names = {peer.name for peer in self.measured(words)[1]}
            self.assertFalse(names & {HARDENED, *peers.SECURE}, words)
        names = {peer.name for peer in self.measured("--peers snmalloc-check --tests larson-1")[1]}
        self.assertEqual(names, {OURS, "snmalloc-check"})

    def attacked(self, words: str) -> list[Peer]:
        with tempfile.TemporaryDirectory() as directory:
            output = Path(directory) / "result.json"
            attacking = mock.patch.object(lab.attacks, "attack_all", return_value=iter(()))
            with attacking as attack_all, contextlib.redirect_stdout(io.StringIO()):
                self.assertEqual(command.main([*words.split(), "--output", str(output)]), 0)
        return list(attack_all.call_args.args[0].peers)

    def test_all_are_attacked(self) -> None:
        measured = self.attacked("attacks")
        self.assertEqual([peer.name for peer in measured], [*OWN, *peers.LEGAL[1:]])
        self.assertIn("hardened", Path(measured[1].library).name)
        self.assertEqual(measured[2].environment, {"HAKMEM_CHECK": "1"})

    def test_or_hakmem_and_those_named(self) -> None:
        self.assertEqual([peer.name for peer in self.attacked("attacks --peers glibc")], [*OWN, "glibc"])

    def interrupted(self, words: str) -> Path:
        """The result file of a command that ends with 130."""
        directory = tempfile.TemporaryDirectory()
        self.addCleanup(directory.cleanup)
        output = Path(directory.name) / "result.json"
        with contextlib.redirect_stdout(io.StringIO()):
            self.assertEqual(command.main([*words.split(), "--output", str(output)]), 130)
        return output

    def test_interrupted_attacks_are_kept(self) -> None:
        each = [lab.attacks.Attack("overflow", 16, "heap"), lab.attacks.Attack("underflow", 16, "heap")]
        runs = iter([lab.attacks.AT_FREE] * 6)

        def run(*_: object) -> str:
            try:
                return next(runs)
            except StopIteration:
                raise KeyboardInterrupt from None

        attacks = mock.patch.multiple(lab.attacks, build=mock.DEFAULT, all_attacks=lambda program: each, run=run)
        with attacks:
            output = self.interrupted("attacks --peers glibc --repetitions 1")
        result = lab.attacks.read(output)
        self.assertEqual((list(result.outcomes), result.complete), (["overflow 16 heap"], False))
        self.assertIn("**This run was interrupted", attack_section.section(result))

    def test_interrupted_counts_are_kept(self) -> None:
        one = Counts("a-test", OURS, 5.0)
        counting = mock.patch.object(lab.watching.counting, "count", side_effect=[one, KeyboardInterrupt])
        with counting, mock.patch.object(lab.counting, "need_valgrind"):
            result = read(self.interrupted("watching"))
        self.assertEqual((result.counts, result.complete), ([one], False))
        self.assertIn("**This run was interrupted", lab.watching.section(result))

    def test_an_output_that_cannot_be_written_is_refused_before_anything_is_measured(self) -> None:
        with tempfile.TemporaryDirectory() as directory:
            for name in ("file", "page.html"):
                (Path(directory) / name).touch()
            for name, line in (
                ("result.html", "pages have such names; legal is another, as FILE.json"),
                ("", "is a directory; legal is the name of a file"),
                ("file/result.json", "Not a directory|File exists"),
                ("file", f"{directory}/file exists; legal is a new file"),
                ("page.json", f"{directory}/page.html exists; legal is a new file"),
            ):
                output = f"{directory}/{name}".rstrip("/")
                errors = io.StringIO()
                with mock.patch.object(lab, "measure") as measure, contextlib.redirect_stderr(errors):
                    self.assertEqual(command.main(["--tests", "larson-1", "--output", output]), 2)
                self.assertRegex(errors.getvalue(), rf"\Ahakmem: --output {re.escape(output)}: ({line})\n\Z")
                measure.assert_not_called()
            self.assertEqual(sorted(path.name for path in Path(directory).iterdir()), ["file", "page.html"])

    def test_results_of_a_part_are_no_document(self) -> None:
        whole = {"asked for": "bench --repetitions 3"}
        both = [Peer(OURS, "", ""), Peer("glibc", "", "")]
        for asked in ("bench", "bench --repetitions 3 --closely glibc:7 --output /tmp/--quick.json"):
            documents._check_whole(Result({"asked for": asked}, both, complete=True))
        for facts, measured, complete in (
            ({"asked for": "bench --tests larson"}, both, True),
            ({"asked for": "bench --quick"}, both, True),
            ({"asked for": "bench --peers glibc --repetitions 7"}, both, True),
            ({"asked for": "bench --peers=glibc"}, both, True),
            ({"asked for": "bench --tests=larson"}, both, True),
            ({"asked for": "bench --no-counts"}, both, True),
            ({"asked for": "bench --repetitions 1"}, both, True),
            ({"asked for": "bench --repetitions=2"}, both, True),
            ({"asked for": "ab HEAD~1 HEAD"}, both, True),
            (whole, both[:1], True),
            (whole, both, False),
        ):
            with self.assertRaisesRegex(CannotError, f"^a result of `{facts['asked for']}`.* is no document's; legal"):
                documents._check_whole(Result(facts, measured, complete=complete))

    def test_sources_without_a_repository_are_of_no_commit(self) -> None:
        with tempfile.TemporaryDirectory() as directory, mock.patch.object(provenance, "ROOT", Path(directory)):
            self.assertEqual(provenance.commit(), "unknown")
            with mock.patch.dict("os.environ", {"PATH": directory}):
                self.assertEqual(provenance.commit(), "unknown")


class SmallRun(unittest.TestCase):
    def test_a_result_and_a_page_are_left(self) -> None:
        test = Test("a-test", "a-group", "it waits", ("/bin/sh", "-c", "sleep 0.01; echo 'Extra = {\"told\": 1}'"))
        good = Peer("hakmem", "1", "here")
        absent = Peer("absent", "", "", missing="not to be had")
        with tempfile.TemporaryDirectory() as directory:
            output = Path(directory) / "result.json"
            options = lab.Options(repetitions=2, output=output, counts=False, system_calls=False)
            console = Console(file=io.StringIO(), width=100)
            with mock.patch.object(lab.provenance, "facts", return_value={"date": "today"}):
                peers_run = [good, Peer("glibc", "2", "there"), absent]
                lab.measure([test], peers_run, options, "asked", console, Path("/none"))
            self.assertEqual(json.loads(output.read_text())["schema"]["name"], "hakmem bench")
            result = read(output)
            self.assertEqual([len(samples) for samples in result.tests[0].samples.values()], [2, 2])
            self.assertEqual(result.tests[0].samples["glibc"][0].extra, {"told": 1})
            self.assertIn("absent", output.with_suffix(".html").read_text())
            self.assertIn("not to be had", console.file.getvalue())  # type: ignore[attr-defined]
            self.assertEqual(peers.NAMES[0], good.name)
            self.assertTrue(result.complete)

    def test_what_is_replaced_meanwhile_is_not_measured_as_the_old(self) -> None:
        """The library that the result is of, a peer's, a program, a script: with a build id or without one."""
        with tempfile.TemporaryDirectory() as directory:
            library, other, program = (Path(directory) / name for name in ("lib.so", "other.so", "program"))
            peer, second = Peer("hakmem", "1", "here"), Peer("second", "1", "there", str(other))
            script = Path(directory) / "script.py"
            for replaced in (library, other, program, script):
                for file in (library, other, script):
                    file.write_bytes(b"..\x04\0\0\0\x14\0\0\0\x03\0\0\0GNU\0" + bytes(range(20)) + b"..")
                program.write_text("#!/bin/sh\n")
                program.chmod(0o755)
                output = Path(directory) / f"{replaced.name}.json"
                again = f"sed -i 's/GNU../GNU\\x00+/; s/^#!/#! /' {replaced}"
                tests = [
                    Test("first", "", "", (str(program), "{scripts}/script.py"), only=("hakmem",)),
                    Test("second", "", "", ("/bin/sh", "-c", again), only=("hakmem",)),
                ]
                options = lab.Options(repetitions=1, output=output, counts=False, system_calls=False)
                facts = mock.patch.object(lab.provenance, "facts", return_value={"date": "today"})
                with self.subTest(replaced.name), facts, mock.patch.object(lab.runner, "SCRIPTS", Path(directory)):
                    with self.assertRaisesRegex(CannotError, rf"\A{replaced} was replaced meanwhile"):
                        lab.measure(tests, [peer, second], options, "asked", Console(file=io.StringIO()), library)
                    self.assertEqual([test.name for test in read(output).tests], ["first"])
                    self.assertFalse(read(output).complete)

    def test_the_same_library_linked_again_is_the_same(self) -> None:
        with tempfile.TemporaryDirectory() as directory:
            library, output = Path(directory) / "lib.so", Path(directory) / "result.json"
            library.write_bytes(b"\x04\0\0\0\x14\0\0\0\x03\0\0\0GNU\0" + bytes(range(20)))
            keep = lab._keeper(output, [Peer("hakmem", "1", "here", str(library))])
            library.touch()
            keep(Result({}, []))
            self.assertTrue(output.exists())

    def test_libraries_are_watched_while_they_are_attacked(self) -> None:
        with tempfile.TemporaryDirectory() as directory:
            library, output = Path(directory) / "lib.so", Path(directory) / "result.json"
            library.touch()
            peer = Peer(OURS, "1", "here", str(library))

            def attack_all(*_: object) -> Iterator[None]:
                yield
                library.write_text("another")
                yield

            with (
                mock.patch.object(lab, "_both", return_value=[peer, peer]),
                mock.patch.object(lab, "get_peers", return_value=[]),
                mock.patch.object(lab.provenance, "facts", return_value={"date": "today"}),
                mock.patch.object(lab.attacks, "attack_all", attack_all),
                self.assertRaisesRegex(CannotError, rf"\A{library} was replaced meanwhile"),
            ):
                lab.attack(None, None, output, "asked", Console(file=io.StringIO()))
            self.assertFalse(lab.attacks.read(output).complete)


if __name__ == "__main__":
    unittest.main()
