"""Programs' signal handlers under the preloaded library: where others have a sigaction too, and on small stacks."""

from __future__ import annotations

import os
import subprocess
import tempfile
import unittest
from pathlib import Path

from support import LIBRARY, run

# Once told to, keeps handlers to itself, as a virtual machine's library does that chains signals.
STRANGER = """
#define _GNU_SOURCE
#include <dlfcn.h>
#include <signal.h>
#include <stddef.h>
static int keeps;
void stranger_keeps(void) { keeps = 1; }
int sigaction(int number, const struct sigaction *action, struct sigaction *old)
{
    if (keeps && action != NULL)
        return 0;
    int (*next)(int, const struct sigaction *, struct sigaction *) = dlsym(RTLD_NEXT, "sigaction");
    return next(number, action, old);
}
"""
KEPT = """
#include <signal.h>
#include <stdlib.h>
#include <unistd.h>
void stranger_keeps(void);
static void machine(int number) { (void)number; _exit(7); }
static void application(int number) { (void)number; _exit(8); }
int main(void)
{
    free(malloc(100));
    struct sigaction action = {.sa_handler = machine};
    sigaction(SIGSEGV, &action, NULL);
    stranger_keeps();
    action.sa_handler = application;
    sigaction(SIGSEGV, &action, NULL);
    raise(SIGSEGV);
    return 1;
}
"""

# The loader has something to say, and a lock, when the program first asks for a handler.
LOADERS_WORD = """
#include <dlfcn.h>
#include <signal.h>
#include <stddef.h>
int main(void)
{
    if (dlopen("/no/such/library", RTLD_NOW) != NULL)
        return 1;
    signal(SIGUSR1, SIG_IGN);
    return dlerror() != NULL ? 0 : 2;
}
"""

# More than the kernel's frame needs by so much, above memory that nobody may touch.
SMALL_STACK = """
#include <signal.h>
#include <stdlib.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <unistd.h>
enum { ROOM = 4608, GUARD = 1 << 16 };
#ifndef AT_MINSIGSTKSZ
#define AT_MINSIGSTKSZ 51
#endif
static void allocate(int number)
{
    (void)number;
    for (int i = 0; i < 200000; i++)
        free(malloc(1000));
}
int main(void)
{
    size_t least = getauxval(AT_MINSIGSTKSZ);
    size_t size = (least != 0 ? least : 2048) + ROOM & ~15ul;
    char *memory = mmap(NULL, GUARD + size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    mprotect(memory, GUARD, PROT_NONE);
    stack_t stack = {.ss_sp = memory + GUARD, .ss_size = size};
    struct sigaction action = {.sa_handler = allocate, .sa_flags = SA_ONSTACK};
    free(malloc(100));
    if (sigaltstack(&stack, NULL) != 0 || sigaction(SIGUSR1, &action, NULL) != 0)
        return 2;
    usleep(1100000); /* statistics are due again */
    raise(SIGUSR1);
    return 0;
}
"""


class Handlers(unittest.TestCase):
    def setUp(self) -> None:
        temporary = tempfile.TemporaryDirectory()
        self.addCleanup(temporary.cleanup)
        self.directory = Path(temporary.name)

    def compiled(self, name: str, source: str, *options: str) -> Path:
        target = self.directory / name
        command = ["gcc", "-w", "-O1", "-fno-builtin", "-x", "c", "-", "-x", "none", "-o", str(target), *options]
        subprocess.run(command, input=source, text=True, check=True)
        return target

    def test_who_keeps_handlers_to_itself_is_let(self) -> None:
        stranger = self.compiled("libstranger.so", STRANGER, "-shared", "-fPIC", "-ldl")
        program = self.compiled("kept", KEPT, str(stranger), f"-Wl,-rpath,{self.directory}")
        for libraries in ((), (LIBRARY.resolve(),)):
            with self.subTest(libraries):
                preload = {"LD_PRELOAD": ":".join(map(str, libraries))}
                self.assertEqual(run(program, environment={**os.environ, **preload}).returncode, 7)

    def test_the_first_handler_leaves_what_the_loader_has_to_say(self) -> None:
        program = self.compiled("words", LOADERS_WORD, "-ldl")
        for guard in ("0", "256M"):
            with self.subTest(guard):
                environment = {**os.environ, "LD_PRELOAD": str(LIBRARY.resolve()), "HAKMEM_GUARD": guard}
                self.assertEqual(run(program, environment=environment).returncode, 0)

    def test_statistics_fit_on_the_stack_of_a_handler(self) -> None:
        program = self.compiled("small", SMALL_STACK)
        file = self.directory / "stats"
        for option in ("HAKMEM_STATS", "HAKMEM_LIVE"):
            with self.subTest(option):
                value = str(file if option == "HAKMEM_STATS" else self.directory)
                environment = {**os.environ, "LD_PRELOAD": str(LIBRARY.resolve()), option: value}
                self.assertEqual(run(program, environment=environment).returncode, 0)
        self.assertGreater(len(file.read_text().splitlines()), 1)


if __name__ == "__main__":
    unittest.main()
