"""Compilers on real projects, whose sources come from crates.io; what they make must be the same."""

from __future__ import annotations

import json
import shutil
import subprocess
import unittest
from pathlib import Path

from crates import Crate, fetch, vendor
from programs import ProgramTest, environment

MANIFEST = """
[package]
name = "sources"
version = "0.1.0"
edition = "2021"
[dependencies]
serde_json = "=1.0.128"
regex = "=1.8.4"
"""

SQLITE = Crate("libsqlite3-sys", "0.30.1", "2e99fb7a497b1e3339bc746195567ed8d3e24945ecd636e3619d20b9de9e9149")
ZSTANDARD = Crate("zstd-sys", "2.0.13+zstd.1.5.6", "38ff0f21cfee8f97d94cef41359e0c89aa6113028ab0291aa8ca0038995a95aa")
HARFBUZZ = Crate("harfbuzz-sys", "0.6.1", "eb86e2fef3ba40cebffb8fa2cba811f06aa5c5fd296a4e469473e5398d166594")
RIPGREP = Crate("ripgrep", "13.0.0", "f37c9d2c2bc7e00bd2653e13771397b94e452583da9b9494eabef627618d64bf")

PROGRAM = r"""
use std::{collections::BTreeMap, sync::mpsc, thread};
fn work(seed: u64) -> String {
    let word = regex::Regex::new(r"(\w+)-(\d{2,})").unwrap();
    let mut map = BTreeMap::new();
    for i in 0..3000u64 {
        let text = format!("item{}-{} x{}", i * seed % 997, i * 31, "y".repeat((i % 90) as usize));
        let value = serde_json::json!({"text": text, "list": (0..i % 20).collect::<Vec<_>>()});
        for part in word.captures_iter(value["text"].as_str().unwrap()) { map.insert(part[1].to_string(), value.to_string()); }
    }
    map.into_iter().map(|(key, value)| format!("{key}{}", value.len())).collect()
}
fn main() {
    let (sender, receiver) = mpsc::channel();
    for seed in 1..9 { let sender = sender.clone(); thread::spawn(move || sender.send((seed, work(seed))).unwrap()); }
    drop(sender);
    let answers: BTreeMap<_, _> = receiver.into_iter().collect();
    for (seed, text) in answers { println!("{seed} {} {}", text.len(), &text[..60]); }
}
"""


class Project(ProgramTest):
    """Has sources from crates.io."""

    packages = ("gcc", "g++", "clang", "make", "lld", "binutils")
    seconds = 900

    def compare_build(self, script: str, *, served: str) -> None:
        """Builds in an empty directory of the same name, both ways; the script ends with digests of what it made."""
        place = self.directory / "build"
        command = ["sh", "-ec", f"rm -rf {place}; mkdir {place}; cd {place}; {script}"]
        result = self.compare(command, served=served, seconds=self.seconds / 2)
        self.assertEqual(result.status, 0, (result.stdout + result.stderr)[-2000:])

    def sources(self, crate: Crate, pattern: str) -> list[str]:
        home = fetch(crate, self.directory)
        found = sorted(str(path) for path in home.glob(pattern))
        self.assertGreater(len(found), 0, pattern)
        return found

    def make_zstd(self, compiler: str, linker: str) -> str:
        """A Makefile of one rule per source, and a shared library from all."""
        sources = self.sources(ZSTANDARD, "zstd/lib/*/*.c")
        rules = [f"all: libzstd.so\nlibzstd.so: {' '.join(f'{n}.o' for n in range(len(sources)))}"]
        rules.append(f"\t{compiler} -shared -fuse-ld={linker} -Wl,--build-id=sha1 -o $@ $^")
        for number, source in enumerate(sources):
            rules.append(f"{number}.o:\n\t{compiler} -O2 -g -fPIC -DZSTD_DISABLE_ASM -c {source} -o $@")
        makefile = self.directory / "Makefile"
        makefile.write_text("\n".join(rules) + "\n")
        return f"make -s -j4 -f {makefile}; sha256sum *.o *.so"


class GccProjects(Project):
    title = "gcc, g++, make, ld, gold"
    version = ("gcc", "--version")

    def test_sqlite(self) -> None:
        """gcc -O2 on SQLite in one file of 9 MB, the object file compared"""
        (source,) = self.sources(SQLITE, "sqlite3/sqlite3.c")
        self.compare_build(f"gcc -O2 -g -c {source} -o o.o; sha256sum o.o", served="cc1")

    def test_harfbuzz(self) -> None:
        """g++ -O1 on HarfBuzz in one file of templates, the object file compared"""
        (source,) = self.sources(HARFBUZZ, "harfbuzz/src/harfbuzz.cc")
        self.compare_build(f"g++ -std=c++17 -O1 -c {source} -o o.o; sha256sum o.o", served="cc1plus")

    def test_zstd(self) -> None:
        """make -j4 of Zstandard with gcc, linked by ld; objects and library compared"""
        self.compare_build(self.make_zstd("gcc", "bfd"), served="make")

    def test_zstd_gold(self) -> None:
        """the same, linked by gold"""
        self.compare_build(self.make_zstd("gcc", "gold"), served="make")

    def test_link_time_optimisation(self) -> None:
        """gcc -flto on Zstandard, the library compared"""
        sources = " ".join(self.sources(ZSTANDARD, "zstd/lib/*/*.c"))
        script = f"gcc -O1 -flto=2 -fPIC -shared -DZSTD_DISABLE_ASM -frandom-seed=1 {sources} -o l.so; sha256sum l.so"
        self.compare_build(script, served="lto1-ltrans")


class ClangProjects(Project):
    title = "clang, lld"
    version = ("clang", "--version")

    def test_sqlite(self) -> None:
        """clang -O2 on SQLite in one file of 9 MB, the object file compared"""
        (source,) = self.sources(SQLITE, "sqlite3/sqlite3.c")
        self.compare_build(f"clang -O2 -g -c {source} -o o.o; sha256sum o.o", served="clang")

    def test_zstd(self) -> None:
        """make -j4 of Zstandard with clang, linked by lld with threads; objects and library compared"""
        self.compare_build(self.make_zstd("clang", "lld"), served="clang")


class Rust(Project):
    """rustup's rustc exports a malloc of its own (jemalloc), which goes before a preloaded one, Debian's does not; the
    linker, build scripts and the programs that are made have none."""

    title = "rustc, cargo"
    packages = ("gcc",) if shutil.which("cargo") else ("gcc", "cargo", "rustc")
    programs = ("cargo", "rustc")
    version = ("rustc", "--version")

    def test_build(self) -> None:
        """cargo build --release of a program with serde_json and regex; the program compared and run on 8 threads"""
        place = self.directory / "project"
        (place / "src").mkdir(parents=True)
        (place / "src" / "main.rs").write_text(PROGRAM)
        (place / "Cargo.toml").write_text(MANIFEST)
        shutil.copy(Path(__file__).with_name("sources.lock"), place / "Cargo.lock")
        vendor(place)
        script = f"cd {place}; rm -rf target; cargo build --release --offline --locked --quiet; target/release/sources"
        self.compare_build(f"{script}; sha256sum target/release/sources", served="rustc")

    def test_ripgrep(self) -> None:
        """cargo build --release of ripgrep 13; the program compared, and its search of the crates' sources on 8 threads"""
        place = fetch(RIPGREP, self.directory)
        vendor(place)
        search = "target/release/rg --threads 8 --sort none -uu -n -i 'alloc|free.*ptr' vendor | sort | sha256sum"
        script = f"cd {place}; rm -rf target; cargo build --release --offline --locked --quiet; {search}"
        self.compare_build(f"{script}; sha256sum target/release/rg", served="rustc")


GO_PROGRAM = r"""
package main

/*
#include <stdlib.h>
#include <string.h>
static void *fill(int n) { char *p = malloc(n); memset(p, n, n); return p; }
static int check(char *p, int n) { int ok = p[0] == (char)n && p[n - 1] == (char)n; free(p); return ok; }
*/
import "C"
import ("crypto/sha256"; "encoding/json"; "fmt"; "runtime"; "sort"; "sync")

func work(seed int) string {
	kept := map[int]*C.char{}
	sum := sha256.New()
	for i := 0; i < 300000; i++ {
		n := 1 + i*seed%3000
		if old, found := kept[i%300]; found {
			if C.check(old, C.int(1+(i-300)*seed%3000)) == 0 { panic("content") }
		}
		kept[i%300] = (*C.char)(C.fill(C.int(n)))
		if i%1000 == 0 { text, _ := json.Marshal(map[string]int{"i": i, "n": n}); sum.Write(text); runtime.Gosched() }
	}
	return fmt.Sprintf("%d %x", seed, sum.Sum(nil))
}

func main() {
	var wait sync.WaitGroup
	answers := make([]string, 16)
	for i := range answers {
		wait.Add(1)
		go func(i int) { defer wait.Done(); answers[i] = work(i + 1) }(i)
	}
	wait.Wait()
	sort.Strings(answers)
	for _, text := range answers { fmt.Println(text) }
}
"""


class Go(ProgramTest):
    packages = ("gcc",) if shutil.which("go") else ("gcc", "golang-go")
    programs = ("go", "gcc")
    version = ("go", "version")

    def test_cgo(self) -> None:
        """go build of a program that calls C's malloc, and the program, on 16 goroutines; go itself is a static program"""
        (self.directory / "main.go").write_text(GO_PROGRAM)
        (self.directory / "go.mod").write_text("module load\n\ngo 1.18\n")
        cache = f"GOCACHE={self.directory}/cache GOFLAGS=-mod=mod GOTOOLCHAIN=local CGO_ENABLED=1"
        script = f"rm -rf cache load; {cache} go build -trimpath -o load . && ./load && sha256sum load"
        result = self.compare(["sh", "-c", script], served="load", cwd=self.directory)
        self.assertEqual(result.status, 0, result.stderr[-2000:])
        self.assertIn("cc1", result.served)

    def test_sqlite_module(self) -> None:
        """go test of the module go-sqlite3: SQLite compiled by cgo, the test program compared and run"""
        download = ["go", "mod", "download", "-json", "github.com/mattn/go-sqlite3@v1.14.24"]
        done = subprocess.run(
            download,
            cwd=self.directory,
            env=environment(False),
            capture_output=True,
            text=True,
            check=True,
            timeout=300,
        )
        place = self.directory / "module"
        shutil.copytree(json.loads(done.stdout)["Dir"], place)
        for path in (place, *place.rglob("*")):
            path.chmod(path.stat().st_mode | 0o200)
        cache = f"GOCACHE={self.directory}/cache GOTOOLCHAIN=local GOFLAGS= CGO_ENABLED=1"
        # What the tests print has times in it; how each of them ended has not.
        outcomes = "sed -nE 's/ *--- ([A-Z]+: [^ ]+).*/\\1/p' log | sort"
        script = (
            f"rm -rf ../cache t; {cache} go test -c -trimpath -o t . && ./t -test.short -test.v > log && {outcomes}"
        )
        result = self.compare(["sh", "-c", f"{script} && sha256sum t"], served="t", cwd=place, seconds=450)
        self.assertEqual(result.status, 0, result.stderr[-2000:])
        self.assertIn("cc1", result.served)
        self.assertGreater(result.stdout.count(b"PASS: "), 50)


if __name__ == "__main__":
    unittest.main()
