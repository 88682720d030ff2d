"""CPython beyond its quick tests: most of its own test modules, pools of processes, numpy."""

from __future__ import annotations

import re
import subprocess
import unittest
from pathlib import Path
from xml.etree import ElementTree

from programs import VENV_PYTHON, ProgramTest, run

PYTHON = "/usr/bin/python3"
TESTSUITE = f"lib{Path(PYTHON).resolve().name}-testsuite"

# By what they need from an allocator. Network, display, and tests of the installation itself are left out; Debian's
# package lacks test_capi and test_sqlite3.
GROUPS = {
    "data types": "array bigmem binascii bisect bool bytes bz2 codecs collections complex copy csv datetime decimal"
    " defaultdict deque dict dictviews enumerate enum float format fractions frozen genericalias heapq int"
    " io itertools list long lzma marshal memoryio memoryview minidom numeric_tower operator ordered_dict pickle"
    " pickletools plistlib pprint queue random range re set slice sort statistics string strftime struct strptime"
    " textwrap tuple unicode unicodedata userdict userlist xml_etree xml_etree_c zipfile zlib".split(),
    "language": "ast asyncgen augassign baseexception binop builtin call class code codeop compile"
    " contextlib coroutines dataclasses decorators descr dis dynamic eof exceptions extcall fstring funcattrs functools"
    " future gc generators genexps global grammar import inspect iter keywordonlyarg"
    " listcomps metaclass named_expressions opcodes patma peepholer pow property raise scope setcomps super"
    " symtable syntax sys sys_settrace tokenize traceback types typing unpack weakref weakset with yield_from".split(),
    "system": "argparse atexit configparser cmd_line ctypes dbm_dumb difflib email epoll errno"
    " faulthandler file fileinput fileio filecmp fnmatch fork1 getopt gettext glob gzip hashlib hmac html"
    " json kqueue linecache locale logging mailbox mimetypes mmap module netrc optparse os pathlib pdb pipes pkgutil"
    " poll popen posix posixpath profile pty pwd resource runpy sched select selectors shelve shlex shutil signal"
    " stat subprocess tarfile tempfile time timeit tracemalloc uuid wait3 wait4 warnings".split(),
    "threads and processes": "asyncio concurrent_futures context multiprocessing_fork multiprocessing_spawn"
    " multiprocessing_forkserver thread threadedtempfile threading threading_local threadsignals".split(),
    "more": "abc aifc audioop base64 bdb bufio buffer calendar cmath cmd codeccallbacks codecencodings_cn"
    " codecencodings_jp codecencodings_kr colorsys compare compileall contains contextlib_async copyreg cprofile crypt"
    " dictcomps doctest dynamicclassattribute except_star exception_group exception_variations fcntl finalization frame"
    " genericpath getpass graphlib grp hash htmlparser http_cookiejar http_cookies imp importlib index"
    " int_literal ioctl ipaddress isinstance iterlen keyword longexp math modulefinder multibytecodec"
    " ntpath openpty opcache pep646_syntax picklebuffer pkg positional_only_arg print pulldom py_compile pyclbr pyexpat"
    " quopri reprlib richcmp rlcompleter sax secrets source_encoding string_literals stringprep strtod structseq"
    " subclassinit sundry sys_setprofile trace type_annotations typechecks ucn unary unittest univnewlines unpack_ex"
    " unparse urlparse userstring utf8_mode utf8source wave zipapp zipimport zoneinfo".split(),
    "local servers": "asynchat asyncore ftplib httplib httpservers imaplib poplib smtplib socket socketserver ssl"
    " urllib urllib2 urllib2_localnet wsgiref xmlrpc".split(),
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


def outcomes(report: Path) -> dict[str, str]:
    """Each test's outcome, from regrtest's JUnit report: "failure" is an assertion, "error" any other exception."""
    found: dict[str, str] = {}
    for case in ElementTree.parse(report).iter("testcase"):
        kinds = {child.tag for child in case} & {"error", "failure", "skipped"}
        how = min(kinds) if kinds else "ok" if case.get("status") == "run" else "skipped"
        name = case.get("name", "")
        found[name] = how if found.get(name, "ok") == "ok" else min(how, found[name])
    return found


class CPythonWide(ProgramTest):
    title = "CPython"
    packages = (TESTSUITE, "python3-venv")
    version = (PYTHON, "--version")
    seconds = 1500

    def outcomes_of(self, modules: list[str], preload: bool) -> dict[str, str]:
        report = self.directory / "report.xml"
        report.unlink(missing_ok=True)
        command = [PYTHON, "-m", "test", "-j2", "--timeout", "400", "-u", "cpu,subprocess"]
        # VSOCK: a virtual machine may have such sockets and nobody at their other end.
        command += ["--junit-xml", str(report), "--ignore", "*VSOCK*", *modules]
        result = run(command, preload=preload, cwd=self.directory, seconds=self.seconds / 2)
        self.assertEqual(any(process.startswith("python3") for process in result.served), preload)
        self.assertTrue(report.exists(), result.stdout.decode(errors="replace")[-2000:])
        return outcomes(report)

    def group(self, name: str) -> None:
        """What passes without the library passes with it. An assertion that fails may be one of time, on a busy machine:
        it may hold when its module is run again by itself. A crash (the test is missing) and an error may not."""
        directory = Path(
            subprocess.check_output([PYTHON, "-c", "import test; print(test.__path__[0])"], text=True).strip()
        )
        modules = sorted(f"test_{module}" for module in GROUPS[name])
        absent = [m for m in modules if not (directory / m).is_dir() and not (directory / f"{m}.py").exists()]
        self.assertEqual(absent, [], "not in the test package")
        without = self.outcomes_of(modules, False)
        with_library = self.outcomes_of(modules, True)
        passed = [test for test, how in without.items() if how == "ok"]
        self.assertGreater(len(passed), 10 * len(modules))
        again = sorted({test.split(".")[1] for test in passed if with_library.get(test) == "failure"})
        if again:
            repeated = self.outcomes_of(again, True)
            with_library |= {test: how for test, how in repeated.items() if with_library.get(test) == "failure"}
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
        """the same of about 80 modules of files, processes, signals, ctypes"""
        self.group("system")

    def test_threads_and_processes(self) -> None:
        """the same of asyncio, futures, threading and multiprocessing (fork, spawn, forkserver)"""
        self.group("threads and processes")

    def test_more(self) -> None:
        """the same of about 100 small modules: codecs, parsers, mathematics, imports, more of the language"""
        self.group("more")

    def test_local_servers(self) -> None:
        """the same of sockets, TLS, HTTP, mail and FTP on this machine"""
        self.group("local servers")

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
