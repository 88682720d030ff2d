"""What the linked library looks like from outside, built with gcc and with clang."""

from __future__ import annotations

import re
import shutil
import unittest

from support import RELEASE, ROOT, output_of, run, skip_or_fail

LIBC_NAMES = {
    "malloc", "free", "calloc", "realloc", "reallocarray", "aligned_alloc", "posix_memalign", "memalign", "valloc",
    "pvalloc", "malloc_usable_size", "free_sized", "free_aligned_sized", "cfree", "malloc_trim", "mallopt", "mallinfo",
    "mallinfo2", "malloc_info", "malloc_stats", "sigaction", "signal", "bsd_signal", "ssignal", "sysv_signal",
    "__sysv_signal", "sigset", "siginterrupt",
}  # fmt: skip


# What tools outside look for: an object.
CONTROL = {"hak_control"}

# Probes for tracers, and how many values each has.
PROBES = {
    ("otel_memory", "alloc"): 3, ("otel_memory", "free"): 1,
    ("hakmem", "refill"): 2, ("hakmem", "flush"): 2, ("hakmem", "purge"): 1,
}  # fmt: skip

# In the shared library only.
SECOND_NAMES = {"dlclose"} | {
    f"__libc_{name}" for name in ("malloc", "free", "calloc", "realloc", "memalign", "valloc", "pvalloc")
}


def operator_names() -> set[str]:
    """The mangled names of every replaceable operator new and delete of C++17."""
    nothrow, aligned = "RKSt9nothrow_t", "St11align_val_t"
    new = {f"_Zn{kind}m{tail}" for kind in "wa" for tail in ("", nothrow, aligned, aligned + nothrow)}
    tails = ("", "m", aligned, "m" + aligned, nothrow, aligned + nothrow)
    return new | {f"_Zd{kind}Pv{tail}" for kind in "la" for tail in tails}


def api_names() -> set[str]:
    """The functions that the public header declares."""
    header = re.sub(r"/\*.*?\*/", "", (ROOT / "include" / "hakmem.h").read_text(), flags=re.DOTALL)
    return set(re.findall(r"\b(hak_\w+)\(", header))


def public_names() -> set[str]:
    return LIBC_NAMES | operator_names() | api_names() | CONTROL


def defined_names(*nm_arguments: str) -> set[str]:
    """The global names that nm finds defined."""
    listing = output_of("nm", "--defined-only", "--extern-only", *nm_arguments)
    return set(re.findall(r"^[0-9a-f]+ \w (\S+)$", listing, re.MULTILINE))


class Gcc(unittest.TestCase):
    directory = RELEASE

    def segment(self, kind: str) -> list[str]:
        """The columns of one program header: kind, offset, addresses, sizes in the file and in memory, flags."""
        listing = output_of("readelf", "-lW", str(self.directory / "libhakmem.so"))
        return next(line.split() for line in listing.splitlines() if line.split()[:1] == [kind])

    def dynamic(self, tag: str) -> list[str]:
        """The values of one tag of the dynamic section."""
        listing = output_of("readelf", "-dW", str(self.directory / "libhakmem.so"))
        return re.findall(rf"\({tag}\)\s+(.*)", listing)

    def test_needs_only_libc(self) -> None:
        needed = re.findall(r"\[(.*?)\]", " ".join(self.dynamic("NEEDED")))
        self.assertEqual([name for name in needed if not name.startswith("ld-linux")], ["libc.so.6"])

    def test_soname(self) -> None:
        self.assertEqual(self.dynamic("SONAME"), ["Library soname: [libhakmem.so.1]"])
        self.assertTrue((self.directory / "libhakmem.so.1").exists())

    def test_stays_loaded(self) -> None:
        self.assertIn("NODELETE", "".join(self.dynamic("FLAGS_1")))

    def test_eight_bytes_of_thread_local_storage(self) -> None:
        self.assertEqual(int(self.segment("TLS")[5], 16), 8)

    def test_stack_is_not_executable(self) -> None:
        self.assertEqual(self.segment("GNU_STACK")[6], "RW")

    def test_has_a_build_id(self) -> None:
        notes = output_of("readelf", "-nW", str(self.directory / "libhakmem.so"))
        self.assertRegex(notes, r"Build ID: [0-9a-f]{40}\b")

    def test_exports_the_public_names(self) -> None:
        names = defined_names("--dynamic", str(self.directory / "libhakmem.so"))
        self.assertEqual(names, public_names() | SECOND_NAMES)

    def test_archive_shows_the_public_names(self) -> None:
        archive = str(self.directory / "libhakmem.a")
        # Those by which its two objects see each other are hidden: from the libraries that the program has.
        hidden = set(re.findall(r"HIDDEN +\d+ (hak_linked_\w+)$", output_of("readelf", "-sW", archive), re.MULTILINE))
        self.assertEqual(defined_names(archive) - hidden, public_names())

    def test_has_probes(self) -> None:
        notes = output_of("readelf", "-nW", str(self.directory / "libhakmem.so"))
        found = re.findall(r"Provider: (\S+)\s+Name: (\S+)\s+Location: \S+, Base: (\S+), .*\s+Arguments: (.*)", notes)
        probes = {(provider, name): len(arguments.split()) for provider, name, _, arguments in found}
        self.assertEqual(probes, PROBES)
        self.assertNotIn("0x0000000000000000", [base for _, _, base, _ in found])

    def test_serves_a_program(self) -> None:
        library = self.directory / "libhakmem.so"
        done = run("/bin/ls", "/", environment={"LD_PRELOAD": str(library)})
        self.assertEqual((done.returncode, done.stderr), (0, ""))


class Clang(Gcc):
    """The same of the other compiler's."""

    directory = ROOT / "build" / "clang"

    @classmethod
    def setUpClass(cls) -> None:
        if shutil.which("clang") is None or shutil.which("clang++") is None:
            skip_or_fail("clang is not installed")
        directory = str(cls.directory)
        configure = ["cmake", "-B", directory, "-DCMAKE_C_COMPILER=clang", "-DCMAKE_CXX_COMPILER=clang++"]
        build = ["cmake", "--build", directory, "--parallel", "2", "--target", "hakmem", "hakmem_static"]
        for command in (configure, build):
            done = run(*command, cwd=ROOT)
            if done.returncode != 0:
                raise AssertionError(f"clang build failed:\n{done.stdout[-8000:]}{done.stderr[-2000:]}")
