"""Whole programs in hostile surroundings, with and without the library: both must do the same, or the library say
why not. What a program meets while running is in limits_test.c and seccomp_test.c."""

from __future__ import annotations

import os
import resource
import subprocess
import sys
import unittest
import uuid
from collections.abc import Callable
from pathlib import Path

LIBRARY = Path(os.environ.get("HAK_TEST_LIBRARY", "build/release/libhakmem.so")).resolve()
PYTHON = "/usr/bin/python3" if Path("/usr/bin/python3").exists() else sys.executable
MIB = 1 << 20

# Allocates 40 MiB in blocks of all sizes, three times over, on two threads; prints what it counted.
WORK = """
import threading
def work(number, out):
    for _ in range(3):
        blocks = [bytes([number]) * (16 << i % 14) for i in range(20000 // 100)] + [str(i) for i in range(50000)]
        out[number] = sum(map(len, blocks))
out = {}
threads = [threading.Thread(target=work, args=(i, out)) for i in range(2)]
for thread in threads: thread.start()
for thread in threads: thread.join()
print(sorted(out.items()))
"""
PYTHON_WORK = [PYTHON, "-S", "-c", WORK]
USES_LIBRARY = "import os; print('libhakmem' in open('/proc/self/maps').read())"


def run(
    command: list[str], *, preload: bool, before: Callable[[], None] | None = None, limit: str | None = None
) -> subprocess.CompletedProcess[bytes]:
    """Runs the command to its end; `before` prepares the process, `limit` is the library's memory limit."""
    environment = {name: value for name, value in os.environ.items() if name != "LD_PRELOAD"}
    if preload:
        environment["LD_PRELOAD"] = str(LIBRARY)
    if limit is not None:
        environment["HAKMEM_LIMIT"] = limit
    return subprocess.run(
        command,
        env=environment,
        preexec_fn=before,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        timeout=100,
        check=False,
    )


def script(*lines: str) -> list[str]:
    """A Python program of these lines, as a command."""
    return [PYTHON, "-S", "-c", "\n".join(lines)]


class Surroundings(unittest.TestCase):
    def assert_same(self, command: list[str], before: Callable[[], None] | None = None) -> None:
        """The command ends well, and in the same way with the library as without."""
        without = run(command, preload=False, before=before)
        with_library = run(command, preload=True, before=before)
        self.assertEqual(without.returncode, 0, without.stderr[-2000:])
        self.assertEqual(with_library.returncode, 0, with_library.stderr[-2000:])
        self.assertEqual(with_library.stdout, without.stdout)
        self.assertEqual(with_library.stderr, without.stderr)

    def test_library_is_in_use(self) -> None:
        self.assertEqual(run([PYTHON, "-c", USES_LIBRARY], preload=True).stdout, b"True\n")

    def limited(self, kind: int, mib: float) -> Callable[[], None]:
        limit = int(mib * MIB)
        return lambda: resource.setrlimit(kind, (limit, limit))

    def test_address_space(self) -> None:
        for mib in (512, 192):
            self.assert_same(PYTHON_WORK, self.limited(resource.RLIMIT_AS, mib))

    def test_least_address_space(self) -> None:
        """A few MiB more than glibc needs: a superslab and the stack of one thread."""
        self.assert_same(["/bin/true"], self.limited(resource.RLIMIT_AS, 4))
        self.assert_same(["/bin/bash", "-c", "x=$(echo hi); echo $x"], self.limited(resource.RLIMIT_AS, 9))
        thread = "import threading; t = threading.Thread(target=print); t.start(); t.join()"
        self.assert_same([PYTHON, "-S", "-c", thread], self.limited(resource.RLIMIT_AS, 36))

    def test_data(self) -> None:
        for mib in (512, 192):
            self.assert_same(PYTHON_WORK, self.limited(resource.RLIMIT_DATA, mib))

    def test_soft_limit(self) -> None:
        """However low: the program does what it does without."""
        without = run(PYTHON_WORK, preload=False)
        for limit in ("1", "4K", "8M", "24M", "1T"):
            result = run(PYTHON_WORK, preload=True, limit=limit)
            self.assertEqual((result.returncode, result.stdout, result.stderr), (0, without.stdout, b""), limit)

    def test_hard_limit(self) -> None:
        """Far above what is needed: no difference. Below: MemoryError, which the program may catch and go on."""
        self.assertEqual(run(PYTHON_WORK, preload=True, limit="1M:1G").stdout, run(PYTHON_WORK, preload=False).stdout)
        survive = "\n".join(
            [
                "kept = [bytes([i % 256]) * 10000 for i in range(400)]",
                "def fill(size):",
                "    blocks = []",
                "    try:",
                "        while True: blocks.append(bytearray(size))",
                "    except MemoryError: return len(blocks) * size",
                "for size in (1000, 50000, 2000000):",
                "    assert 10_000_000 < fill(size) < 50_000_000",
                "x = bytes(20_000_000)",
                "assert all(block == bytes([i % 256]) * 10000 for i, block in enumerate(kept))",
                "print('fine')",
            ]
        )
        for limit in ("0:48M", "32M:48M", "48M:48M"):
            result = run([PYTHON, "-S", "-c", survive], preload=True, limit=limit)
            self.assertEqual((result.returncode, result.stdout, result.stderr), (0, b"fine\n", b""), limit)
        result = run([PYTHON, "-S", "-c", "x = bytes(100_000_000)"], preload=True, limit="0:32M")
        self.assertEqual(result.returncode, 1)
        self.assertTrue(result.stderr.rstrip().endswith(b"MemoryError"), result.stderr[-2000:])

    def test_hard_limit_that_nothing_can_live_under(self) -> None:
        """An exit code and a message, and no signal."""
        for limit in ("0:1", "0:100K", "0:400K", "0:1M", "0:2M"):
            result = run(["/bin/bash", "-c", "x=$(echo hi); echo $x"], preload=True, limit=limit)
            if result.returncode == 0:
                self.assertEqual(result.stdout, b"hi\n", limit)
            else:
                self.assertNotEqual(result.stderr, b"", limit)
                self.assertGreater(result.returncode, 0, limit)

    def test_too_little(self) -> None:
        """Nothing can run: an exit code and a message, and no signal."""
        command = ["/bin/bash", "-c", "x=$(echo hi); echo $x"]
        for mib in (2, 3, 5, 8, 12):
            for kind in (resource.RLIMIT_AS, resource.RLIMIT_DATA):
                result = run(command, preload=True, before=self.limited(kind, mib))
                if result.returncode < 0 and kind == resource.RLIMIT_AS:
                    # glibc's loader does not look whether it has got memory for its list of modules with thread-local
                    # variables: between too little for libc and enough for us there are some pages at which it dies.
                    result = run(command, preload=True, before=self.limited(kind, mib + 1 / 8))
                if result.returncode == 0:
                    self.assertEqual(result.stdout, b"hi\n")
                else:
                    self.assertNotEqual(result.stderr, b"")
                    self.assertGreater(result.returncode, 0)

    def test_endless_stack(self) -> None:
        """With it the kernel lays the address space out upward from a third of it."""
        unlimited = (resource.RLIM_INFINITY, resource.RLIM_INFINITY)
        self.assert_same(
            ["/bin/bash", "-c", "for i in {1..2000}; do x[$i]=$i; done; echo ${#x[@]}"],
            lambda: resource.setrlimit(resource.RLIMIT_STACK, unlimited),
        )

    def test_personalities(self) -> None:
        """No randomness, the old layout, and addresses below 3 GiB only."""
        for options in (["-R"], ["-L"], ["-R", "-L"], ["-3"]):
            self.assert_same(["setarch", os.uname().machine, *options, *PYTHON_WORK])

    def unshared(self, *command: str) -> list[str]:
        if run(["unshare", "-m", "true"], preload=False).returncode != 0:
            self.skipTest("no rights to a mount namespace")
        return ["unshare", "-m", *command]

    def test_no_proc(self) -> None:
        script = 'umount -l /proc && test ! -e /proc/self && exec "$0" "$@"'
        self.assert_same(self.unshared("/bin/bash", "-c", script, *PYTHON_WORK))

    def test_memory_cgroup(self) -> None:
        """A process that needs two thirds of its cgroup's memory is not killed; one that needs more is, as with
        any allocator."""
        root = Path("/sys/fs/cgroup/memory")
        group = root / f"hakmem-test-{uuid.uuid4().hex[:8]}"
        try:
            group.mkdir()
        except OSError as error:
            self.skipTest(f"no rights to memory cgroups (v1): {error}")
        self.addCleanup(group.rmdir)
        (group / "memory.limit_in_bytes").write_text(str(64 * MIB))

        def enter() -> None:
            (group / "cgroup.procs").write_text(str(os.getpid()))

        churn = "for i in range(100): x = None; x = [bytes([i + 1]) * (40000 + i) for _ in range(1000)]"
        self.assert_same(script(churn, "print(len(x))"), enter)
        # What is free goes before the cgroup's limit is reached, unless nobody is to look: 24 MB in holes that are
        # too short for what comes.
        freeing = script(
            "x = [bytearray(b'1') * 140_000 for _ in range(330)]",
            "del x[::2]",
            "y = [bytearray(b'2') * 200_000 for _ in range(110)]",
            "print(len(x), len(y))",
        )
        self.assert_same(freeing, enter)
        self.assertEqual(run(freeing, preload=True, before=enter, limit="0").returncode, -9)
        # A freed block of 45 MB serves small ones: by that the process does not grow, limit or not.
        caching = script(
            "x = [None] * 13000",
            "y = bytearray(b'1') * 45_000_000",
            "del y",
            "for i in range(13000): x[i] = bytearray(b'2') * 3000",
            "print(len(x))",
        )
        self.assert_same(caching, enter)
        self.assertEqual(run(caching, preload=True, before=enter, limit="0").returncode, 0)
        for preload in (False, True):
            result = run(script("x = [bytes([1]) * 100000 for _ in range(2000)]"), preload=preload, before=enter)
            self.assertEqual(result.returncode, -9)


class Result(unittest.TextTestResult):
    """Says what is skipped in a line that `hakmem test` counts."""

    def addSkip(self, test: unittest.TestCase, reason: str) -> None:
        super().addSkip(test, reason)
        print(f"[  SKIPPED ] {test.id()}: {reason}", flush=True)


if __name__ == "__main__":
    unittest.main(testRunner=unittest.TextTestRunner(resultclass=Result))
