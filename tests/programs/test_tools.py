"""Tools that look into programs that run on the library: debuggers, tracers, profilers."""

from __future__ import annotations

import re
import subprocess
import unittest

from programs import LIBRARY, ProgramTest, environment

# Blocks of all kinds, from two threads, all freed; a pattern in each.
PROGRAM = r"""
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void *work(void *seed)
{
    unsigned char *kept[64] = {0};
    unsigned random = (unsigned)(size_t)seed;
    for (int i = 0; i < 20000; i++) {
        random = random * 1103515245 + 12345;
        unsigned slot = random >> 16 & 63, size = 1 + (random >> 8 & 1023) * (slot == 5 ? 100 : 1);
        free(kept[slot]);
        kept[slot] = i % 3 ? malloc(size) : i % 2 ? calloc(1, size) : realloc(NULL, size);
        memset(kept[slot], (int)slot, size);
    }
    for (int i = 0; i < 64; i++) free(kept[i]);
    return NULL;
}

int main(void)
{
    pthread_t thread;
    pthread_create(&thread, NULL, work, (void *)7);
    work((void *)3);
    pthread_join(thread, NULL);
    puts("fine");
    return 0;
}
"""


class ToolTest(ProgramTest):
    """Has the program, compiled."""

    def setUp(self) -> None:
        super().setUp()
        (self.directory / "program.c").write_text(PROGRAM)
        command = ["gcc", "-g", "-O1", "-pthread", "program.c", "-o", "program"]
        subprocess.run(command, cwd=self.directory, env=environment(False), check=True)
        self.program = str(self.directory / "program")

    def preloaded(self, tool: list[str], *, seconds: float = 300) -> str:
        """Runs the tool without the library on a program with it; what both print."""
        done = subprocess.run(
            tool, cwd=self.directory, env=environment(False), stdin=subprocess.DEVNULL, capture_output=True, text=True,
            timeout=seconds,
        )  # fmt: skip
        self.assertEqual(done.returncode, 0, done.stdout[-2000:] + done.stderr[-2000:])
        return done.stdout + done.stderr


class Valgrind(ToolTest):
    packages = ("valgrind", "gcc", "libc6-dbg")
    programs = ("valgrind", "gcc")
    version = ("valgrind", "--version")

    def valgrind(self, *options: str) -> str:
        command = ["valgrind", "-q", "--error-exitcode=9", *options, "env", f"LD_PRELOAD={LIBRARY}", self.program]
        return self.preloaded(["valgrind", "--trace-children=yes", *command[1:]])

    def test_memcheck(self) -> None:
        """memcheck of a preloaded program with valgrind's own malloc in place: no errors"""
        self.assertIn("fine", self.valgrind("--leak-check=full"))

    def test_memcheck_of_the_library(self) -> None:
        """memcheck with the library serving (--soname-synonyms=somalloc=nouserintercepts): no errors"""
        text = self.valgrind("--soname-synonyms=somalloc=nouserintercepts")
        self.assertIn("fine", text)

    def test_callgrind(self) -> None:
        """callgrind counts instructions in the library's malloc"""
        out = self.directory / "out"
        self.valgrind("--tool=callgrind", f"--callgrind-out-file={out}.%p")
        text = "".join(path.read_text() for path in self.directory.glob("out.*"))
        # It tells objects by their section .text. malloc is in one of its own (cmake/layout.ld), and counted without an object.
        self.assertRegex(text, r"fn=\(\d+\) (hak_)?malloc\b")
        self.assertNotRegex(text, r"fn=\(\d+\) _int_malloc\b")


class Gdb(ToolTest):
    title = "gdb"
    packages = ("gdb", "gcc")
    programs = ("gdb", "gcc")
    version = ("gdb", "--version")

    def gdb(self, *commands: str) -> str:
        arguments = [part for command in commands for part in ("-ex", command)]
        start = [
            "gdb",
            "-q",
            "-batch",
            "-ex",
            f"set environment LD_PRELOAD {LIBRARY}",
            "-ex",
            "set startup-with-shell off",
        ]
        return self.preloaded([*start, *arguments, self.program])

    def test_breakpoint_in_malloc(self) -> None:
        """stops in malloc, shows a backtrace into the program, calls malloc and free, goes on to the end"""
        text = self.gdb(
            "break main", "run", "delete", "break malloc", "continue", "backtrace", "info symbol malloc", "delete",
            "print ((void*(*)(unsigned long))malloc)(100)", "call ((void(*)(void*))free)($)", "continue",
        )  # fmt: skip
        self.assertRegex(text, r"#\d+ .* (in|at) .*program.c")
        self.assertIn("libhakmem", text)
        cannot = re.search(r"^Couldn't write .*", text, re.MULTILINE)
        if cannot:
            self.fail(f"this gdb calls no functions on this processor, with the library or without: {cannot[0]}")
        self.assertRegex(text, r"\$1 = \(void \*\) 0x")
        self.assertIn("fine", text)
        self.assertIn("exited normally", text)

    def test_attach(self) -> None:
        """attaches to a running process, reads its memory, lets it go on"""
        script = (
            "import time; x = ['s' * i for i in range(2000)]; print('up', flush=True); time.sleep(6); print(len(x))"
        )
        process = subprocess.Popen(
            ["/usr/bin/python3", "-c", script], env=environment(True), stdout=subprocess.PIPE, text=True
        )
        with process:
            assert process.stdout is not None
            self.assertEqual(process.stdout.readline(), "up\n")
            text = self.preloaded(
                ["gdb", "-q", "-batch", "-p", str(process.pid), "-ex", "info symbol malloc", "-ex", "bt"]
            )
            self.assertIn("libhakmem", text)
            self.assertEqual(process.stdout.read(), "2000\n")
            self.assertEqual(process.wait(30), 0)


class Strace(ToolTest):
    title = "strace"
    packages = ("strace", "gcc")
    programs = ("strace", "gcc")
    version = ("strace", "--version")

    def test_trace(self) -> None:
        """follows threads; the library makes no system calls but those for memory, and opens nothing"""

        def calls(preload: str) -> list[str]:
            log = self.directory / f"log{len(preload)}"
            self.assertIn("fine", self.preloaded(["strace", "-f", "-o", str(log), *preload.split(), self.program]))
            return re.findall(r"^\d+ +(\w+)\(", log.read_text(), re.MULTILINE)

        without = set(calls(""))
        added = set(calls(f"-E LD_PRELOAD={LIBRARY}")) - without
        memory = {
            "mmap",
            "munmap",
            "mprotect",
            "madvise",
            "mremap",
            "getrandom",
            "prlimit64",
            "futex",
            "membarrier",
            "gettid",
            "getpid",  # a fork's child is told from its parent
        }
        self.assertEqual(added - memory, set())


class Perf(ToolTest):
    title = "perf"
    packages = ("linux-perf", "gcc")
    programs = ("perf", "gcc")
    version = ("perf", "--version")

    def test_record(self) -> None:
        """records a preloaded program and names the library's functions"""
        loop = f"for i in 1 2 3 4 5 6 7 8 9 10; do {self.program}; done"
        command = [
            "perf",
            "record",
            "-e",
            "cpu-clock",
            "-F",
            "2000",
            "-o",
            "data",
            "env",
            f"LD_PRELOAD={LIBRARY}",
            "sh",
            "-c",
            loop,
        ]
        self.preloaded(command)
        text = self.preloaded(["perf", "report", "-i", "data", "--stdio", "--sort", "dso,symbol"])
        self.assertIn("libhakmem.so", text)


class Wrappers(ProgramTest):
    title = "sh, env, nice, timeout, xargs"
    version = ("sh", "-c", "readlink -f /bin/sh")

    def test_wrappers(self) -> None:
        """programs that start programs hand the library on"""
        script = "seq 300 | xargs -P 4 -n 10 timeout 20 nice env sh -c 'echo $* | tr 1 2; sleep 0.02' x | sort"
        result = self.compare(["sh", "-c", script], served="xargs")
        self.assertTrue({"sleep", "xargs"} <= result.served, result.served)
        self.assertEqual(len(result.stdout.splitlines()), 30)


if __name__ == "__main__":
    unittest.main()
