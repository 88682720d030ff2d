"""The corpora of the fuzzers: of all inputs that were found, the few that together reach most of what is reached."""

from __future__ import annotations

import re
import shutil
import subprocess
import tempfile
from pathlib import Path

from hakmem_cli import build
from hakmem_cli.say import CannotError

# Of one fuzzer.
FILES_MOST = 100
BYTES_MOST = 100 << 10


def directory(name: str) -> Path:
    return build.ROOT / "tests" / "fuzz" / "corpus" / name


def is_generated(path: Path) -> bool:
    """Those that libFuzzer has named; others have failed once, or were written by hand, and stay."""
    return re.fullmatch(r"[0-9a-f]{40}", path.name) is not None


def _features(control: str) -> list[set[int]]:
    """Of each input, by its number, from the file that libFuzzer keeps while it merges."""
    found: dict[int, set[int]] = {}
    for line in control.splitlines():
        words = line.split()
        if words[:1] == ["FT"]:
            found[int(words[1])] = {int(word) for word in words[2:]}
    return [found.get(number, set()) for number in range(max(found, default=-1) + 1)]


def choose(inputs: list[tuple[Path, int, set[int]]]) -> list[Path]:
    """Of inputs, each given by path, bytes and features: always the one that adds most; of equals the shorter."""
    chosen: list[Path] = []
    reached: set[int] = set()
    room = BYTES_MOST
    left = [one for one in inputs if one[2]]
    while left and len(chosen) < FILES_MOST:
        path, size, features = max(left, key=lambda one: (len(one[2] - reached), -one[1]))
        left.remove((path, size, features))
        if not features - reached:
            break
        if size <= room:
            chosen.append(path)
            reached |= features
            room -= size
    return chosen


def keep(name: str, program: Path, environment: dict[str, str]) -> None:
    """Chooses anew from the corpus that is kept and the one that was worked with."""
    kept = directory(name)
    working = build.BUILD / "fuzz" / "corpus" / name
    with tempfile.TemporaryDirectory() as temporary:
        control = Path(temporary, "control")
        merged = Path(temporary, "merged")
        merged.mkdir()
        command = [str(program), "-set_cover_merge=1", f"-merge_control_file={control}", "-detect_leaks=0", str(merged)]
        done = subprocess.run(
            [*command, str(working), str(kept)],
            env=environment,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            check=False,
        )
        if done.returncode != 0 or not control.exists():
            raise CannotError(f"{name}: merging the corpus ended with {done.returncode}")
        text = control.read_text(errors="replace")
        paths = [Path(line) for line in re.findall(r"^/.*$", text, re.MULTILINE)]
        inputs = [(path, path.stat().st_size, features) for path, features in zip(paths, _features(text))]
        chosen = choose(inputs)
        for path in chosen:
            if path.parent != kept:
                shutil.copy(path, kept / path.name)
    names = {path.name for path in chosen}
    for path in kept.iterdir():
        if is_generated(path) and path.name not in names:
            path.unlink()
