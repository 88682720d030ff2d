"""gcc and g++ on large generated sources: with and without the library they write the same object files."""

import unittest

from programs import ProgramTest, run
from sources import c_source, cxx_source


class Compilers(ProgramTest):
    title = "gcc"
    programs = ("gcc", "g++")
    version = ("gcc", "--version")
    quick = True

    def compare_objects(self, compiler: list[str], name: str, text: str, process: str) -> None:
        source = self.directory / name
        source.write_text(text)
        result = self.directory / "result.o"
        command = [*compiler, "-O1", "-c", name, "-o", result.name]
        without = run(command, preload=False, cwd=self.directory)
        self.assertEqual(without.status, 0, without.stderr.decode())
        expected = result.read_bytes()
        result.unlink()
        with_library = run(command, preload=True, cwd=self.directory)
        self.assert_same(with_library, without)
        self.assertEqual(result.read_bytes(), expected)
        self.assertIn(process, with_library.served)

    def test_gcc_on_20000_lines(self) -> None:
        text = c_source()
        self.assertGreater(text.count("\n"), 20000)
        self.compare_objects(["gcc", "-std=gnu17"], "large.c", text, "cc1")

    def test_gxx_on_templates(self) -> None:
        self.compare_objects(["g++", "-std=gnu++17"], "heavy.cpp", cxx_source(), "cc1plus")

    def test_an_error_is_the_same(self) -> None:
        source = self.directory / "broken.c"
        source.write_text("int f(void) { return undeclared + ; }\n")
        command = ["gcc", "-c", source.name]
        without = run(command, preload=False, cwd=self.directory)
        self.assertEqual(without.status, 1)
        self.assert_same(run(command, preload=True, cwd=self.directory), without)


if __name__ == "__main__":
    unittest.main()
