"""An installed hakmem, as the projects of others find it: by pkg-config and by find_package, shared and static."""

from __future__ import annotations

import itertools
import re
import shutil
import subprocess
import tempfile
import unittest
from pathlib import Path

from support import RELEASE, ROOT, output_of, run, skip_or_fail

CONSUMER = ROOT / "tests" / "install"
COMPILERS = {"c": "cc", "cpp": "c++"}


def must(*command: str | Path, environment: dict[str, str] | None = None) -> str:
    """What the command prints; its error output is the reason if it fails."""
    done = run(*command, environment=environment)
    if done.returncode != 0:
        raise AssertionError(f"{' '.join(map(str, command))}:\n{done.stdout[-4000:]}{done.stderr[-4000:]}")
    return done.stdout


class Install(unittest.TestCase):
    directory: Path
    prefix: Path

    @classmethod
    def setUpClass(cls) -> None:
        cls.directory = Path(tempfile.mkdtemp(prefix="hakmem-install-"))
        cls.addClassCleanup(shutil.rmtree, cls.directory)
        # Moved after it was installed: nothing in it may depend on the prefix.
        must("cmake", "--install", RELEASE, "--prefix", cls.directory / "elsewhere")
        cls.prefix = (cls.directory / "elsewhere").rename(cls.directory / "prefix")
        cls.libraries = next(cls.prefix.rglob("libhakmem.a")).parent

    def assert_served(self, program: Path, *, shared: bool, whole: bool = False) -> None:
        environment = {"LD_LIBRARY_PATH": str(self.libraries)} if shared else {}
        self.assertEqual(must(program, environment=environment), "served\n")
        needed = re.findall(r"NEEDED.*\[(.*)\]", output_of("readelf", "-dW", str(program)))
        self.assertEqual(bool({"libhakmem.so.1", "libhakmem-hardened.so.1"} & set(needed)), shared)
        self.assertEqual(needed == [], whole)

    def test_files(self) -> None:
        files = {str(path.relative_to(self.libraries)) for path in self.libraries.rglob("*")}
        version = self.pkg_config("--modversion", "hakmem")
        self.assertLessEqual(
            {"libhakmem.a", "libhakmem.so", "libhakmem.so.1", f"libhakmem.so.{version}", "pkgconfig/hakmem.pc"}, files
        )
        self.assertEqual((self.libraries / "libhakmem.so").readlink(), Path("libhakmem.so.1"))
        self.assertEqual((self.libraries / "libhakmem.so.1").readlink(), Path(f"libhakmem.so.{version}"))
        self.assertEqual([path.name for path in (self.prefix / "include").iterdir()], ["hakmem.h"])

    def test_preloads(self) -> None:
        library = self.libraries / "libhakmem.so.1"
        maps = must("cat", "/proc/self/maps", environment={"LD_PRELOAD": str(library)})
        self.assertIn(str(library.resolve()), maps)

    def pkg_config(self, *arguments: str) -> str:
        if shutil.which("pkg-config") is None:
            skip_or_fail("pkg-config is not installed")
        environment = {"PATH": "/usr/bin:/bin", "PKG_CONFIG_LIBDIR": str(self.libraries / "pkgconfig")}
        return must("pkg-config", *arguments, environment=environment).strip()

    def build(self, language: str, name: str, flags: str) -> Path:
        """Builds the consumer as its manual says: the compiler, the source, what pkg-config printed."""
        program = self.directory / name
        version = self.pkg_config("--modversion", "hakmem")
        source = CONSUMER / f"consumer.{language}"
        must(COMPILERS[language], f'-DWANTED_VERSION="{version}"', source, "-o", program, *flags.split())
        return program

    def test_pkg_config_shared(self) -> None:
        flags = self.pkg_config("--cflags", "--libs", "hakmem")
        for language in COMPILERS:
            self.assert_served(self.build(language, f"{language}-shared", flags), shared=True)

    def test_pkg_config_archive(self) -> None:
        flags = self.pkg_config("--cflags", "--libs", "hakmem-static")
        for language in COMPILERS:
            self.assert_served(self.build(language, f"{language}-archive", flags), shared=False)

    def test_pkg_config_all_static(self) -> None:
        flags = self.pkg_config("--static", "--cflags", "--libs", "hakmem") + " -static"
        for language in COMPILERS:
            self.assert_served(self.build(language, f"{language}-static", flags), shared=False, whole=True)

    def test_programs_that_call_little(self) -> None:
        options = ["-O2", "-flto", "-Wl,--as-needed"]
        options += [f"-fuse-ld={name}" for name in ("gold", "lld") if shutil.which(f"ld.{name}")]
        for package, kind in {"hakmem": "-pie", "hakmem-static": "-pie", "--static hakmem": "-static"}.items():
            flags = self.pkg_config("--cflags", "--libs", *package.split()).split()
            for language, option in itertools.product(COMPILERS, options):
                with self.subTest(package=package, language=language, option=option):
                    program = self.directory / "bare"
                    must(COMPILERS[language], CONSUMER / f"bare.{language}", "-o", program, option, kind, *flags)
                    done = run(program, environment={"HAKMEM_MODE": "wrong", "LD_LIBRARY_PATH": str(self.libraries)})
                    self.assertEqual((done.returncode, done.stdout), (0, "done\n"))
                    self.assertIn("HAKMEM_MODE=wrong", done.stderr)

    def test_rust(self) -> None:
        """What a build script prints, as cargo gives it to the compiler."""
        if shutil.which("rustc") is None:
            self.skipTest("rustc is not installed")
        source, program = self.directory / "bare.rs", self.directory / "bare-rust"
        source.write_text('fn main() { println!("{}", vec!["done"; 100].concat().split_at(4).0); }\n')
        must("rustc", "-O", source, "-o", program, "-L", f"native={self.libraries}", "-l", "static=hakmem")
        done = run(program, environment={"HAKMEM_MODE": "wrong"})
        self.assertEqual((done.returncode, done.stdout), (0, "done\n"))
        self.assertIn("HAKMEM_MODE=wrong", done.stderr)

    def configure(self, source: Path, build: Path) -> subprocess.CompletedProcess[str]:
        return run("cmake", "-S", source, "-B", build, f"-DCMAKE_PREFIX_PATH={self.prefix}")

    def test_find_package(self) -> None:
        build = self.directory / "consumer"
        done = self.configure(CONSUMER, build)
        self.assertEqual(done.returncode, 0, done.stderr)
        must("cmake", "--build", build)
        for language in COMPILERS:
            self.assert_served(build / f"{language}_hakmem", shared=True)
            self.assert_served(build / f"{language}_hardened", shared=True)
            self.assert_served(build / f"{language}_static", shared=False)

    def test_find_package_refuses_another_major_version(self) -> None:
        source = self.directory / "wants-another"
        source.mkdir()
        script = (CONSUMER / "CMakeLists.txt").read_text().replace("hakmem 0.1 ", "hakmem 7.0 ")
        (source / "CMakeLists.txt").write_text(script)
        done = self.configure(source, self.directory / "wants-another-build")
        self.assertNotEqual(done.returncode, 0)
        self.assertIn('compatible with requested version "7.0"', " ".join(done.stderr.split()))
