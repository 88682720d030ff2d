"""CPython beyond its quick tests: most of its own test modules, pools of processes, numpy."""

from __future__ import annotations

import re
import unittest
from pathlib import Path

from programs import VENV_PYTHON, ProgramTest, run

PYTHON = "/usr/bin/python3"
TESTSUITE = f"lib{Path(PYTHON).resolve().name}-testsuite"

# By what they need from an allocator. Network, display, and tests of the installation itself are left out.
GROUPS = {
    "data types": "array bigmem binascii bisect bool bytes bz2 codecs collections complex copy csv datetime decimal"
    " defaultdict deque dict dictviews enumerate enum float format fractions frozen genericalias heapq int"
    " io itertools list long lzma marshal memoryio memoryview minidom numeric_tower operator ordereddict pickle"
    " pickletools plistlib pprint queue random range re set slice sort statistics str strftime string struct strptime"
    " textwrap tuple unicode unicodedata userdict userlist xml_etree xml_etree_c zipfile zlib".split(),
    "language": "ast asyncgen augassign baseexception binop builtin call class closure code codeop compile"
    " contextlib coroutines dataclasses decorators descr dis dynamic eof exceptions extcall fstring funcattrs functools"
    " future gc generators genexps getargs2 global grammar import inspect iter keywordonlyarg lambda"
    " listcomps metaclass named_expressions opcodes patma peepholer pow property raise scope setcomps slots super"
    " symtable syntax sys sys_settrace tokenize traceback types typing unpack weakref weakset with yield_from".split(),
    "system": "argparse atexit capi configparser cmd_line ctypes dbm_dumb difflib email epoll errno"
    " faulthandler file fileinput fileio filecmp float fnmatch fork1 getopt gettext glob gzip hashlib hmac html"
    " json kqueue linecache locale logging mailbox mimetypes mmap module netrc optparse os pathlib pdb pipes pkgutil"
    " poll popen posix posixpath profile pty pwd resource runpy sched select selectors shelve shlex shutil signal"
    " sqlite3 stat subprocess tarfile tempfile time timeit tracemalloc uuid wait3 wait4 warnings".split(),
    "threads and processes": "asyncio concurrent_futures context multiprocessing_fork multiprocessing_spawn"
    " multiprocessing_forkserver thread threadedtempfile threading threading_local thread".split(),
}

POOLS = r"""
import ctypes, hashlib, multiprocessing, sqlite3, sys, threading
def work(seed):
    parts = [str(i * seed) * (i % 50) for i in range(5000)]
    return hashlib.sha256("".join(parts).encode()).hexdigest()
def main():
    for method in ("fork", "spawn", "forkserver"):
        with multiprocessing.get_context(method).Pool(6) as pool:
            print(method, pool.map(work, range(60), chunksize=3)[::10])
    answers = {}
    threads = [threading.Thread(target=lambda n=n: answers.__setitem__(n, work(n))) for n in range(40)]
    for thread in threads: thread.start()
    for thread in threads: thread.join()
    print(sorted(answers.items())[:3])
    libc = ctypes.CDLL(None)
    libc.malloc.restype = ctypes.c_void_p; libc.malloc.argtypes = [ctypes.c_size_t]; libc.free.argtypes = [ctypes.c_void_p]
    blocks = [libc.malloc(n) for n in range(1, 5000)]
    for n, block in enumerate(blocks, 1): ctypes.memset(block, n % 256, n)
    assert all(ctypes.string_at(block, n) == bytes([n % 256]) * n for n, block in enumerate(blocks, 1))
    for block in blocks: libc.free(block)
    database = sqlite3.connect(":memory:")
    database.execute("create table t (a, b)")
    database.executemany("insert into t values (?, ?)", ((i, "x" * (i % 200)) for i in range(50000)))
    database.create_function("twice", 1, lambda x: x * 2)
    print(database.execute("select sum(twice(a)), sum(length(b)) from t where a % 3 = 0").fetchall())
if __name__ == "__main__": main()
"""

NUMPY = r"""
import hashlib, numpy as np, threading
rng = np.random.default_rng(1)
def digest(a): return hashlib.sha256(np.ascontiguousarray(np.round(a, 6))).hexdigest()[:16]
a = rng.standard_normal((700, 700)); b = rng.standard_normal((700, 700))
print(digest(np.sort(a.ravel())), a.sum().round(6), np.linalg.det(a[:60, :60]).round(3))
print((a @ np.linalg.inv(a)).round(5).trace(), np.linalg.svd(a[:200, :200], compute_uv=False)[:3].round(6))
print(digest(np.fft.ifft2(np.fft.fft2(a)).real), digest(np.cumsum(a * b, axis=0)))
for size in (10, 1000, 100000, 3000000): x = np.zeros(size); x += 1; print(x.sum(), x.ctypes.data % 16)
s = np.array([f"text {i}" * (i % 9) for i in range(20000)]); print(len(np.unique(s)), np.char.upper(s)[7])
o = np.empty(100000, dtype=object); o[:] = [{"i": i} for i in range(100000)]; print(sum(d["i"] for d in o[::7]))
out = {}
def work(n): out[n] = float(np.linalg.norm(np.random.default_rng(n).standard_normal((400, 400)) @ np.ones(400)).round(4))
threads = [threading.Thread(target=work, args=(n,)) for n in range(12)]
for t in threads: t.start()
for t in threads: t.join()
print(sorted(out.items()))
"""


def outcomes(text: str) -> dict[str, str]:
    """Each test's outcome, from the verbose output."""
    found = re.findall(
        r"^(test\w* \([\w.]+\)).*? \.\.\. (?:.*?)(ok|FAIL|ERROR|skipped|expected failure)", text, re.MULTILINE
    )
    return dict(found)


class CPythonWide(ProgramTest):
    title = "CPython"
    packages = (TESTSUITE, "python3-venv")
    version = (PYTHON, "--version")
    seconds = 1500

    def group(self, name: str) -> None:
        """What passes without the library passes with it. Tests of timing and of the machine fail in both."""
        modules = sorted({f"test_{module}" for module in GROUPS[name]})
        there = [m for m in modules if list(Path(PYTHON).resolve().parents[1].glob(f"lib/python3.*/test/{m}*"))]
        command = [PYTHON, "-m", "test", "-j2", "-v", "--timeout", "400", "-u", "cpu,subprocess", *there]
        found = []
        for preload in (False, True):
            result = run(command, preload=preload, cwd=self.directory, seconds=self.seconds / 2)
            found.append(outcomes(result.stdout.decode(errors="replace")))
            self.assertEqual(any(process.startswith("python3") for process in result.served), preload)
        without, with_library = found
        self.assertGreater(len(without), 100)
        passed = [test for test, how in without.items() if how == "ok"]
        worse = [f"{test}: {with_library.get(test, 'missing')}" for test in passed if with_library.get(test) != "ok"]
        if worse:
            raise AssertionError(f"{len(worse)} of {len(passed)} tests differ: {'; '.join(worse)}")

    def test_data_types(self) -> None:
        """its own tests of about 65 modules of data types: what passes without the library passes with it"""
        self.group("data types")

    def test_language(self) -> None:
        """the same of about 75 modules of the language itself"""
        self.group("language")

    def test_system(self) -> None:
        """the same of about 80 modules of files, processes, signals, ctypes, sqlite3"""
        self.group("system")

    def test_threads_and_processes(self) -> None:
        """the same of asyncio, futures, threading and multiprocessing (fork, spawn, forkserver)"""
        self.group("threads and processes")

    def test_pools(self) -> None:
        """pools of processes by fork, spawn and forkserver, 40 threads, ctypes on malloc, sqlite3"""
        (self.directory / "pools.py").write_text(POOLS)
        result = self.compare([PYTHON, "pools.py"], served=Path(PYTHON).name, cwd=self.directory)
        self.assertEqual(result.status, 0)


class NumPy(ProgramTest):
    packages = ("python3-venv",)
    pypi = ("numpy<2.3", "pytest", "hypothesis")
    version = (str(VENV_PYTHON), "-c", "import numpy; print(numpy.__version__)")

    def test_arrays(self) -> None:
        """linear algebra, FFT, sorting, strings, object arrays, 12 threads; results compared"""
        environment = ["env", "OPENBLAS_NUM_THREADS=2"]
        result = self.compare([*environment, str(VENV_PYTHON), "-c", NUMPY], served="python")
        self.assertEqual(result.status, 0, result.stderr[-1000:])

    def test_own_tests(self) -> None:
        """its own tests of arrays, iterators, sorting, strings and records (pytest)"""
        names = "multiarray mem_overlap nditer ufunc umath regression dtype records shape_base indexing einsum".split()
        modules = [f"numpy._core.tests.test_{name}" for name in names]
        command = [str(VENV_PYTHON), "-m", "pytest", "-q", "-p", "no:cacheprovider", "--pyargs", *modules, "--tb=line"]
        command += ["-k", "not test_large and not slow and not leaks"]
        answers = []
        for preload in (False, True):
            result = run(command, preload=preload, cwd=self.directory, seconds=280)
            text = result.stdout.decode(errors="replace")
            answers.append((result.status, re.sub(r" in [\d.]+s.*", "", text.splitlines()[-1])))
            self.assertEqual("python" in result.served, preload)
        self.assertEqual(answers[1], answers[0])
        self.assertIn(" passed", answers[0][1])


if __name__ == "__main__":
    unittest.main()
