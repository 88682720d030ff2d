"""Which allocators there are, and what is told of those that cannot be had."""

from __future__ import annotations

import subprocess
import tempfile
import unittest
from dataclasses import replace
from pathlib import Path
from unittest import mock

from hakmem_bench import peers, sources
from hakmem_bench.model import CannotError, Peer


class Choice(unittest.TestCase):
    def test_all_without_a_choice(self) -> None:
        self.assertEqual(peers.choose(None), list(peers.NAMES))
        self.assertEqual(peers.NAMES[0], "hakmem")

    def test_those_that_give_up_speed_are_there_by_name_only(self) -> None:
        self.assertEqual(set(peers.NAMES) | set(peers.SECURE), set(peers.LEGAL))
        for few in (peers.NAMES, peers.QUICK):
            self.assertFalse(set(few) & set(peers.SECURE))
        self.assertEqual(peers.choose("hardened-malloc"), ["hardened-malloc"])
        self.assertEqual(peers.choose(None, peers.LEGAL), list(peers.LEGAL))

    def test_in_the_order_given_once_each(self) -> None:
        self.assertEqual(peers.choose("snmalloc, glibc,snmalloc"), ["snmalloc", "glibc"])

    def test_an_unknown_one_is_named_with_the_legal_ones(self) -> None:
        line = r"\Asnmallok: no such peer; legal are hakmem, glibc, .*rpmalloc[^\n]*\Z"
        with self.assertRaisesRegex(CannotError, line):
            peers.choose("glibc,snmallok")
        with self.assertRaises(CannotError):
            peers.choose(" , ")

    def test_the_quick_ones_are_known_and_at_least_six(self) -> None:
        self.assertLessEqual(set(peers.QUICK), set(peers.NAMES))
        self.assertGreater(len(peers.QUICK), 6)


class Fetching(unittest.TestCase):
    def setUp(self) -> None:
        directory = tempfile.TemporaryDirectory()
        self.addCleanup(directory.cleanup)
        self.kept = Path(directory.name)
        self.said: list[str] = []
        self.answers: dict[str, Peer | Exception] = {}
        for patch in (
            mock.patch.object(peers, "KEPT", self.kept),
            mock.patch.object(peers, "_RECORD", self.kept / "peers.json"),
            mock.patch.object(peers, "_SOURCES", {name: self for name in ("one", "two")}),
        ):
            patch.start()
            self.addCleanup(patch.stop)

    def fetch(self, name: str, kept: Path) -> Peer:
        answer = self.answers[name]
        if isinstance(answer, Exception):
            raise answer
        return answer

    def test_what_was_fetched_is_known_later(self) -> None:
        one = Peer("one", "1.2", "somewhere", environment={"A": "B"})
        self.answers = {"one": one}
        self.assertEqual(peers.known(["one", "two"]), [])
        self.assertEqual(peers.fetch(["one"], self.said.append), [one])
        self.assertEqual(peers.known(["one", "two"]), [one])

    def fetch_a_library(self) -> Path:
        """It serves when it is fetched."""
        library = self.kept / "library.so"
        library.touch()
        self.answers = {"one": Peer("one", "1", "", str(library))}
        with mock.patch.object(peers, "prove", return_value=""):
            peers.fetch(["one"], self.said.append)
            self.assertEqual(len(peers.known(["one"])), 1)
        return library

    def test_a_library_that_is_gone_is_not_known(self) -> None:
        self.fetch_a_library().unlink()
        self.assertEqual(peers.known(["one"]), [])

    def test_one_that_no_longer_serves_is_not_known(self) -> None:
        self.fetch_a_library()
        with mock.patch.object(peers, "prove", return_value="/bin/cat ends with -11"):
            self.assertEqual(peers.known(["one"]), [])

    def test_one_of_other_sources_than_todays_is_not_known(self) -> None:
        crate, one = sources.Crate("one", "one-sys"), Peer("one", "1", "")
        crates = self.kept / "crates"
        built_of = ("Cargo.toml", "Cargo.lock", ".cargo/config.toml", "export/src/lib.rs", "one/src/lib.rs")
        for name in (*built_of, "two/src/lib.rs"):
            (crates / name).parent.mkdir(parents=True, exist_ok=True)
            (crates / name).touch()
        with mock.patch.object(sources, "CRATES", crates):
            with mock.patch.object(peers, "_SOURCES", {"one": crate}):
                peers._write({"one": one})
                for name in built_of:
                    (crates / name).write_text("changed")
                    self.assertEqual(peers.known(["one"]), [], name)
                    (crates / name).write_text("")
                (crates / "two" / "src" / "lib.rs").write_text("changed")
                self.assertEqual(peers.known(["one"]), [one])
            for other in (replace(crate, environment={"A": "B"}), replace(crate, works="peer_works")):
                with mock.patch.object(peers, "_SOURCES", {"one": other}):
                    self.assertEqual(peers.known(["one"]), [])

    def test_what_the_system_upgrades_is_asked_again(self) -> None:
        for source in (sources.LibC(), sources.Debian("libone", "one.so")):
            with mock.patch.object(peers, "_SOURCES", {"one": source}):
                peers._write({"one": Peer("one", "1", "")})
                self.assertEqual(peers.known(["one"]), [])
                peers._write({"one": Peer("one", "", "", missing="only root may install it")})
                self.assertEqual(peers.known(["one"]), [])

    def test_a_failure_is_a_peer_that_says_why(self) -> None:
        self.answers = {"one": OSError("disk full"), "two": Peer("two", "2", "")}
        one, two = peers.fetch(["one", "two"], self.said.append)
        self.assertEqual((one.missing, two.missing), ("disk full", ""))
        self.assertIn("one cannot be had: disk full", "\n".join(self.said))
        self.assertEqual(peers.known(["one"]), [one])

    def test_one_that_does_not_serve_is_missing(self) -> None:
        self.answers = {"one": Peer("one", "1", "", str(self.kept / "no-such-library.so"))}
        (one,) = peers.fetch(["one"], self.said.append)
        self.assertIn("does not map it", one.missing)

    def test_one_that_crashes_is_missing(self) -> None:
        with mock.patch.object(peers.subprocess, "run", return_value=mock.Mock(returncode=-11, stderr="")):
            self.assertEqual(peers.prove(Peer("one", "1", "", "/x")), "/bin/cat ends with -11: ")


class Crates(unittest.TestCase):
    def test_each_has_a_package_and_a_locked_version(self) -> None:
        workspace = (sources.CRATES / "Cargo.toml").read_text()
        lock = (sources.CRATES / "Cargo.lock").read_text()
        crates = {name: source for name, source in peers._SOURCES.items() if isinstance(source, sources.Crate)}
        self.assertLessEqual(set(peers.SECURE), set(crates))
        for name, source in crates.items():
            with self.subTest(name):
                manifest = (sources.CRATES / source.directory / "Cargo.toml").read_text()
                self.assertIn(f'name = "peer-{source.directory}"\n', manifest)
                self.assertRegex(manifest, rf"(?m)^{source.crate} = ")
                self.assertIn(f'"{source.directory}"', workspace)
                self.assertIn(f'name = "peer-{source.directory}"\n', lock)
                self.assertRegex(source._locked_version(), r"\A\d+\.\d+")

    def test_each_is_built_by_itself(self) -> None:
        """Cargo gives a crate the features that any of the packages built together wants."""
        commands: list[list[str]] = []

        def run(command: list[str]) -> tuple[bool, str]:
            commands.append(command)
            return True, ""

        with (
            mock.patch.object(sources, "_run", run),
            mock.patch.object(sources.shutil, "which", return_value="/bin/cargo"),
        ):
            peer = sources.Crate("mimalloc-secure", "libmimalloc-sys").fetch("name", Path("/kept"))
        self.assertEqual(peer.library, "/kept/target/release/libpeer_mimalloc_secure.so")
        self.assertRegex(peer.version, r"\Acrate \d+\.\d+")
        (command,) = commands
        self.assertEqual([word for word in command if word.startswith("peer-")], ["peer-mimalloc-secure"])
        self.assertEqual(command[command.index("--package") + 1], "peer-mimalloc-secure")
        self.assertNotIn("--workspace", command)

    def library(self, text: str) -> Path:
        """Of C, which no allocator's functions are in: the C library serves."""
        directory = tempfile.TemporaryDirectory()
        self.addCleanup(directory.cleanup)
        library = Path(directory.name) / "library.so"
        command = ["cc", "-shared", "-fPIC", "-x", "c", "-", "-o", str(library)]
        subprocess.run(command, input=text, text=True, check=True)
        return library

    def test_the_library_is_asked_for_its_version(self) -> None:
        library = self.library("int peer_mi_version(void) { return 30302; }")
        self.assertEqual(sources.asked(library, "peer_mi_version"), "3.3.2")
        self.assertEqual(sources.asked(library, "peer_no_such"), "unknown")

        def run(command: list[str]) -> tuple[bool, str]:
            return True, "3.3.2\n" if "peer_mi_version" in command else ""

        with (
            mock.patch.object(sources, "_run", run),
            mock.patch.object(sources.shutil, "which", return_value="/bin/cargo"),
        ):
            peer = peers._SOURCES["mimalloc-crate"].fetch("name", Path("/kept"))
        self.assertRegex(peer.version, r"\A3\.3\.2 \(crate \d+\.\d+\.\d+\)\Z")

    def test_one_that_does_not_serve_as_it_is_meant_to_is_missing(self) -> None:
        """Google's tcmalloc without its caches per processor, for example."""
        library = self.library(
            """
            #include <stdbool.h>
            #include <stdlib.h>
            bool peer_works(void) { return getenv("PEER_WORKS") != NULL; }
            """
        )
        source = sources.Crate("one", "one-sys", works="peer_works")
        with mock.patch.object(peers, "_SOURCES", {"one": source}):
            self.assertEqual(peers.prove(Peer("one", "1", "", str(library), {"PEER_WORKS": ""})), "")
            self.assertEqual(peers.prove(Peer("one", "1", "", str(library))), "peer_works() does not say so")

    def test_what_the_lab_asks_the_crates_export(self) -> None:
        for name, source in peers._SOURCES.items():
            functions = (source.version, source.works) if isinstance(source, sources.Crate) else ()
            for function in filter(None, functions):
                with self.subTest(f"{name} {function}"):
                    text = (sources.CRATES / source.directory / "src" / "lib.rs").read_text()
                    self.assertIn(f'#[no_mangle]\npub unsafe extern "C" fn {function}(', text)
        self.assertEqual(peers._SOURCES["google-tcmalloc"].works, "peer_caches_per_cpu_are_on")


if __name__ == "__main__":
    unittest.main()
