"""Other versions of the library, built for comparison: revisions, and the working tree without one of its features."""

from __future__ import annotations

import shutil
import subprocess
import tarfile
import tempfile
from pathlib import Path

from hakmem_bench.model import ROOT, CannotError, Peer
from hakmem_cli import build

TREES = ROOT / "build" / "lab" / "trees"
ABLATIONS = ROOT / "bench" / "ablations"

_SOURCES = ("src", "include", "cmake", "bench", "CMakeLists.txt", "CMakePresets.json")


def _fresh(name: str) -> Path:
    """Only sources are made anew: what was built there before is built again only as far as they differ."""
    tree = TREES / name
    for source in _SOURCES:
        path = tree / source
        if path.is_dir():
            shutil.rmtree(path)
        else:
            path.unlink(missing_ok=True)
    tree.mkdir(parents=True, exist_ok=True)
    return tree


def commit_of(name: str) -> str:
    asked = ["git", "rev-parse", "--verify", "--quiet", "--short=12", f"{name}^{{commit}}"]
    found = subprocess.run(asked, cwd=ROOT, capture_output=True, text=True, check=False)
    if found.returncode != 0:
        raise CannotError(f"{name}: no such revision; legal is what git rev-parse knows: a commit, branch or tag")
    return found.stdout.strip()


def revision(name: str) -> Peer:
    """The library as it was, or would be, at that revision."""
    commit = commit_of(name)
    tree = _fresh(commit)
    with tempfile.TemporaryFile() as archive:
        done = subprocess.run(["git", "archive", commit], cwd=ROOT, stdout=archive, check=False)
        if done.returncode != 0:
            raise CannotError(f"{name}: git archive failed")
        archive.seek(0)
        with tarfile.open(fileobj=archive) as tar:
            tar.extractall(tree)
    return Peer(name, commit, f"git {commit}", str(build.build_tree(tree)))


def ablations() -> dict[str, Path]:
    """The features that can be taken out, each with the patch that does it."""
    return {path.stem: path for path in sorted(ABLATIONS.glob("*.patch"))}


def what_is_lost(patch: Path) -> str:
    """The first line of the text before the patch."""
    return patch.read_text().partition("\n")[0]


def apply(patch: Path, tree: Path) -> None:
    command = ["patch", "--strip=1", "--forward", "--batch", "--silent", "--no-backup-if-mismatch", "--reject-file=-"]
    done = subprocess.run([*command, "--input", str(patch)], cwd=tree, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise CannotError(f"{patch.relative_to(ROOT)} does not apply: {' '.join((done.stdout + done.stderr).split())}")


def build_anew_if_changed(patch: Path, tree: Path) -> None:
    """A file that the patch leaves alone by now is older than the object that was made of it while it did not."""
    built = tree / "built.patch"
    if not built.exists() or built.read_bytes() != patch.read_bytes():
        shutil.rmtree(tree / "build", ignore_errors=True)
        shutil.copyfile(patch, built)


def ablation(name: str, patch: Path) -> Peer:
    """The working tree's library without that feature."""
    tree = _fresh(f"without-{name}")
    for source in _SOURCES:
        path = ROOT / source
        if path.is_dir():
            shutil.copytree(path, tree / source)
        else:
            shutil.copy2(path, tree / source)
    apply(patch, tree)
    build_anew_if_changed(patch, tree)
    return Peer(f"without {name}", "working tree", what_is_lost(patch), str(build.build_tree(tree)))
