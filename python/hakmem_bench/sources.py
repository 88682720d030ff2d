"""Where allocators come from: the C library, Debian's packages, PyPI, crates.io."""

from __future__ import annotations

import hashlib
import platform
import re
import shutil
import subprocess
import sys
import zipfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType
from typing import Protocol

from hakmem_bench.model import ROOT, Peer
from hakmem_cli import apt

CRATES = ROOT / "bench" / "peers"

_SECONDS = 1800


class Source(Protocol):
    def fetch(self, name: str, kept: Path) -> Peer:
        """The peer, or why it cannot be had. `kept` is where to keep what is not installed."""
        ...


def _run(command: list[str]) -> tuple[bool, str]:
    """Whether it succeeded, and its output, or the last line of its complaint."""
    try:
        done = subprocess.run(
            command, cwd=CRATES, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=_SECONDS, check=False
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        return False, str(error)
    if done.returncode == 0:
        return True, done.stdout
    lines = [line.strip() for line in (done.stderr or done.stdout).splitlines() if line.strip()]
    errors = [line for line in lines if line.startswith("error")]
    return False, (errors or lines or [f"exit {done.returncode}"])[0 if errors else -1]


def asked(library: Path, how: str, environment: Mapping[str, str] = MappingProxyType({})) -> str:
    """What the library itself says of its version, or whether something is so, in a process of its own, preloaded: some
    cannot be loaded later. `how` is as ask_version.py has it."""
    asking = Path(__file__).with_name("ask_version.py")
    settings = [f"{name}={value}" for name, value in {**environment, "LD_PRELOAD": str(library)}.items()]
    succeeded, text = _run(["/usr/bin/env", *settings, sys.executable, "-B", str(asking), how])
    return text.strip() if succeeded else "unknown"


@dataclass(frozen=True)
class LibC:
    def fetch(self, name: str, kept: Path) -> Peer:
        return Peer(name, " ".join(platform.libc_ver()).strip() or "unknown", "the system's C library")


@dataclass(frozen=True)
class Debian:
    package: str
    file: str
    version: str = ""
    """How to ask the library itself: see ask_version.py. Otherwise the package's version is it."""

    def fetch(self, name: str, kept: Path) -> Peer:
        source = f"Debian {self.package}"
        if not apt.is_installed(self.package):
            reason = apt.install([self.package])
            if reason is not None:
                return Peer(name, "", source, missing=reason)
        succeeded, listing = _run(["dpkg-query", "--listfiles", self.package])
        paths = [Path(line) for line in listing.splitlines() if succeeded and Path(line).name == self.file]
        if not paths:
            return Peer(name, "", source, missing=f"no {self.file} in the package")
        _, version = _run(["dpkg-query", "--show", "--showformat=${Version}", self.package])
        if self.version:
            version = f"{asked(paths[0], self.version)} (package {version})"
        return Peer(name, version, source, str(paths[0]))


@dataclass(frozen=True)
class PyPI:
    project: str
    file: str
    version: str = ""

    def fetch(self, name: str, kept: Path) -> Peer:
        source = f"PyPI {self.project}"
        directory = kept / name
        shutil.rmtree(directory, ignore_errors=True)
        directory.mkdir(parents=True)
        download = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--only-binary=:all:"]
        succeeded, text = _run([*download, "--dest", str(directory), self.project])
        wheels = list(directory.glob("*.whl"))
        if not succeeded or not wheels:
            return Peer(name, "", source, missing=text or "nothing downloaded")
        with zipfile.ZipFile(wheels[0]) as wheel:
            wheel.extractall(directory)
        libraries = list(directory.rglob(self.file))
        if not libraries:
            return Peer(name, "", source, missing=f"no {self.file} in {wheels[0].name}")
        version = wheels[0].name.split("-")[1]
        if self.version:
            version = f"{asked(libraries[0], self.version)} (wheel {version})"
        return Peer(name, version, source, str(libraries[0]))


@dataclass(frozen=True)
class Crate:
    """One of our own small libraries in bench/peers, which export malloc and its kin over a crate."""

    directory: str
    crate: str
    environment: dict[str, str] = field(default_factory=dict)
    version: str = ""
    """How to ask the library itself: see ask_version.py. Otherwise there is the crate's version only."""
    works: str = ""
    """The function of ours that says whether the library serves as it is meant to."""

    def files(self) -> Iterator[Path]:
        """What it is built of, without what cargo fetches, which Cargo.lock names."""
        yield from (CRATES / name for name in ("Cargo.toml", "Cargo.lock", ".cargo/config.toml"))
        for directory in ("export", self.directory):
            yield from sorted(path for path in (CRATES / directory).rglob("*") if path.is_file())

    def fetch(self, name: str, kept: Path) -> Peer:
        source = f"crates.io {self.crate}"
        if shutil.which("cargo") is None:
            # Debian's plain cargo is too old for most of these crates.
            reason = apt.install(["cargo-web", "rustc-web"])
            if reason is not None:
                return Peer(name, "", source, missing=f"cargo: {reason}")
        target = kept / "target"
        build = ["cargo", "build", "--quiet", "--release", "--locked", "--target-dir", str(target)]
        # By itself: of packages that are built together each crate gets the features that any of them wants.
        succeeded, text = _run([*build, "--package", f"peer-{self.directory}"])
        if not succeeded:
            return Peer(name, "", source, missing=text)
        library = target / "release" / f"libpeer_{self.directory.replace('-', '_')}.so"
        version = f"crate {self._locked_version()}"
        if self.version:
            says = asked(library, self.version, self.environment).partition("-0-g")[0]  # a release, as git describes it
            version = f"{says} ({version})"
        return Peer(name, version, source, str(library), self.environment)

    def _locked_version(self) -> str:
        lock = (CRATES / "Cargo.lock").read_text()
        found = re.search(rf'^name = "{re.escape(self.crate)}"\nversion = "(.+)"$', lock, re.MULTILINE)
        return found[1].partition("+")[0] if found else "unknown"


def digest(source: Source) -> str:
    """Of what decides which library is fetched: the row in the table of sources, and what a crate is built of."""
    found = hashlib.sha256(repr(source).encode())
    for path in source.files() if isinstance(source, Crate) else ():
        found.update(f"\0{path.relative_to(CRATES)}\0".encode() + path.read_bytes())
    return found.hexdigest()
