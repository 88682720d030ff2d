"""Real programs as workloads. What they work on is made from a seed, so each does the same in every run."""

from __future__ import annotations

import shutil
from collections.abc import Iterable

from hakmem_bench import program_inputs as inputs
from hakmem_bench.model import Test

GROUP = "programs"
# Strings get the same hashes in every run, so that tables grow and probe alike.
PYTHON = ("/usr/bin/env", "PYTHONHASHSEED=0", "/usr/bin/python3")
PYTHON_ON_MALLOC = ("/usr/bin/env", "PYTHONHASHSEED=0", "PYTHONMALLOC=malloc", "/usr/bin/python3")
PERL = ("/usr/bin/env", "PERL_HASH_SEED=0", "PERL_PERTURB_KEYS=0", "/usr/bin/perl")
REDIS = ("/usr/bin/python3", "{scripts}/redis_bench.py")
GHOSTSCRIPT = ("/usr/bin/gs", "-q", "-dBATCH", "-dNOPAUSE", "-sDEVICE=ppmraw", "-r150", "-sOutputFile=/dev/null")


def script(name: str) -> str:
    return f"{{scripts}}/{name}"


TESTS: tuple[Test, ...] = (
    Test(
        "redis",
        GROUP,
        "redis-benchmark -P 16, ten commands, against redis-server; the server's memory",
        (*REDIS, "50000"),
        quick=(*REDIS, "10000"),
        preloads_itself=True,
        packages=("redis-server", "redis-tools"),
    ),
    Test(
        "cpython-objects",
        GROUP,
        "CPython with PYTHONMALLOC=malloc: objects, dictionaries, lists, strings, cycles",
        (*PYTHON_ON_MALLOC, script("objects.py"), "12"),
        quick=(*PYTHON_ON_MALLOC, script("objects.py"), "4"),
        packages=("python3",),
    ),
    Test(
        "cpython-text",
        GROUP,
        "CPython: JSON and regular expressions",
        (*PYTHON, script("text.py"), "18"),
        packages=("python3",),
    ),
    Test(
        "cpython-buffers",
        GROUP,
        "CPython: two threads fill and compress buffers, two unpack them; long integers",
        (*PYTHON, script("buffers.py"), "12000"),
        threads=5,
        packages=("python3",),
    ),
    Test(
        "sqlite",
        GROUP,
        "sqlite3: inserts, indexes, joins, updates in memory",
        ("/usr/bin/sqlite3", "-bail", ":memory:", ".read {data}/full.sql"),
        quick=("/usr/bin/sqlite3", "-bail", ":memory:", ".read {data}/quick.sql"),
        setup=inputs.both(
            inputs.writer("full.sql", inputs.sql, 250_000),
            inputs.writer("quick.sql", inputs.sql, 60_000),
        ),
        packages=("sqlite3",),
    ),
    Test(
        "gcc-c",
        GROUP,
        "gcc -O2 -c of a generated C file of many functions",
        ("/usr/bin/gcc", "-O2", "-c", "{data}/full.c", "-o", "out.o"),
        setup=inputs.writer("full.c", inputs.c_source, 150),
        packages=("gcc", "libc6-dev"),
    ),
    Test(
        "gcc-cxx",
        GROUP,
        "g++ -O1 -c of a C++ file full of templates: maps, variants, regular expressions",
        ("/usr/bin/g++", "-std=c++17", "-O1", "-DINSTANCES=2", "-c", script("templates.cpp"), "-o", "out.o"),
        packages=("g++",),
    ),
    Test(
        "lua",
        GROUP,
        "Lua: trees of tables, strings, closures",
        ("/usr/bin/lua5.4", script("tables.lua"), "90"),
        quick=("/usr/bin/lua5.4", script("tables.lua"), "15"),
        packages=("lua5.4",),
    ),
    Test(
        "perl",
        GROUP,
        "Perl: hashes, regular expressions, sorting",
        (*PERL, script("hashes.pl"), "45"),
        packages=("perl",),
    ),
    Test(
        "ghostscript",
        GROUP,
        "Ghostscript: pages of text, curves, shadings and images at 150 dpi",
        (*GHOSTSCRIPT, "{data}/pages.ps"),
        setup=inputs.writer("pages.ps", inputs.postscript, 100),
        packages=("ghostscript",),
    ),
    Test(
        "z3",
        GROUP,
        "Z3: an array written in two orders, bit-vectors",
        ("/usr/bin/z3", "{data}/stores.smt2"),
        setup=inputs.writer("stores.smt2", inputs.smt, 110),
        packages=("z3",),
    ),
    Test(
        "rocksdb",
        GROUP,
        "RocksDB's db_bench: fillrandom, compact, readrandom; its threads write and compact",
        (
            "/usr/bin/db_bench",
            # RocksDB flushes by usable sizes, and compacts by the count of files: without `compact` reads go
            # through four files or one, as the allocator's rounding would have it.
            "--benchmarks=fillrandom,compact,readrandom",
            "--num=200000",
            "--db=db",
            "--seed=7",
            "--progress_reports=false",
            "--disable_wal=true",
            "--write_buffer_size=4194304",
            "--cache_size=16777216",
        ),
        threads=3,
        packages=("rocksdb-tools",),
    ),
    Test(
        "node",
        GROUP,
        "Node.js: JSON, maps, buffers, zlib",
        ("/usr/bin/node", script("objects.js"), "100"),
        packages=("nodejs",),
    ),
)


def programs_of(test: Test) -> list[str]:
    """The programs that its command starts, as paths or names: what `env` runs, and the server that a driver starts."""
    words = list(test.command)
    if words[0] == "/usr/bin/env":
        words = [word for word in words[1:] if "=" not in word]
    if test.preloads_itself:
        return [words[0], "redis-server", "redis-cli", "redis-benchmark"]
    return [words[0]]


def missing_programs(tests: Iterable[Test]) -> dict[str, str]:
    """Of the tests that cannot run: why not."""
    result: dict[str, str] = {}
    for test in tests:
        missing = [program for program in programs_of(test) if shutil.which(program) is None]
        if missing:
            result[test.name] = f"{', '.join(missing)} not there (Debian: {', '.join(test.packages)})"
    return result
