"""Sources from crates.io by name, version and checksum: also where cargo is too old for its index or not there."""

from __future__ import annotations

import hashlib
import io
import json
import re
import tarfile
import time
import urllib.error
import urllib.request
from dataclasses import dataclass
from pathlib import Path

_PACKAGE = re.compile(r'^name = "(.+)"\nversion = "(.+)"\nsource = "registry.+"\nchecksum = "(.+)"$', re.MULTILINE)
_ATTEMPTS = 3


@dataclass(frozen=True)
class Crate:
    name: str
    version: str
    checksum: str

    @property
    def directory(self) -> str:
        """In its archive, and in a vendor directory, where several versions of one crate may stand."""
        return f"{self.name}-{self.version}"


def _download(address: str) -> bytes:
    for attempt in range(1, _ATTEMPTS + 1):
        try:
            with urllib.request.urlopen(address, timeout=60) as answer:
                return bytes(answer.read())
        except (urllib.error.URLError, TimeoutError) as error:
            if attempt == _ATTEMPTS:
                raise AssertionError(f"{address}: {error}") from error
            time.sleep(attempt)
    raise AssertionError(address)


def fetch(crate: Crate, into: Path) -> Path:
    """Its directory there."""
    name = crate.directory.replace("+", "%2B")
    data = _download(f"https://static.crates.io/crates/{crate.name}/{name}.crate")
    if hashlib.sha256(data).hexdigest() != crate.checksum:
        raise AssertionError(f"{crate.directory}: another checksum than {crate.checksum}")
    into.mkdir(parents=True, exist_ok=True)
    with tarfile.open(fileobj=io.BytesIO(data)) as archive:
        archive.extractall(into)
    # What cargo wants of a vendored crate; it checks the files that are named.
    marker = {"files": {}, "package": crate.checksum}
    (into / crate.directory / ".cargo-checksum.json").write_text(json.dumps(marker))
    return into / crate.directory


def vendor(project: Path) -> None:
    """All that the project's Cargo.lock names, and cargo told to use nothing else."""
    found = [Crate(*fields) for fields in _PACKAGE.findall((project / "Cargo.lock").read_text())]
    assert found, f"{project}: nothing in Cargo.lock"
    for crate in found:
        fetch(crate, project / "vendor")
    (project / ".cargo").mkdir(exist_ok=True)
    replacement = '[source.crates-io]\nreplace-with = "vendored"\n[source.vendored]\ndirectory = "vendor"\n'
    (project / ".cargo" / "config.toml").write_text(replacement)
