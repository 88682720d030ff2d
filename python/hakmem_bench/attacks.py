"""Attacks: tests/attacks/attack.cpp, one memory bug a run, with every allocator. Who stops which, and when?"""

from __future__ import annotations

import json
import subprocess
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path

from hakmem_bench import runner
from hakmem_bench.model import HARDENED, OURS, ROOT, CannotError, Peer, write_file

CHECKED = "hakmem, check mode"
# Those of hakmem, in the order of tables.
OWN = (OURS, HARDENED, CHECKED)
SOURCE = ROOT / "tests" / "attacks" / "attack.cpp"
REPETITIONS = 3
SCHEMA = {"name": "hakmem attacks", "version": 1}

_SECONDS = 20

# What a run came to, the best first.
AT_ONCE = "at once"
AT_FREE = "at free"
LATER = "later"
AT_EXIT = "at exit"
REPORTED = "reported"
NO_EFFECT = "no effect"
MISSED = "missed"
HANGS = "hangs"
OUTCOMES = (AT_ONCE, AT_FREE, LATER, AT_EXIT, REPORTED, NO_EFFECT, MISSED, HANGS)
GOOD = frozenset(OUTCOMES) - {MISSED, HANGS}

# The last letter that a run has told before it was ended.
_ENDED_AFTER = {"S": AT_ONCE, "D": AT_FREE, "F": LATER, "E": AT_EXIT}


@dataclass(frozen=True)
class Attack:
    bug: str
    size: int
    variant: str

    @property
    def name(self) -> str:
        return f"{self.bug} {self.size} {self.variant}"


@dataclass
class Attacked:
    """The result of all attacks: outcomes of each run, by name of the attack and of the allocator."""

    provenance: dict[str, str]
    peers: list[Peer]
    outcomes: dict[str, dict[str, list[str]]] = field(default_factory=dict)
    complete: bool = True
    """False if it was interrupted."""

    def write(self, path: Path) -> None:
        write_file(path, {"schema": SCHEMA, **asdict(self)})


def is_result(path: Path) -> bool:
    try:
        return json.loads(path.read_text()).get("schema") == SCHEMA
    except (OSError, ValueError, AttributeError, RecursionError):
        return False


def read(path: Path) -> Attacked:
    kept = json.loads(path.read_text())
    try:
        peers = [Peer(**peer) for peer in kept["peers"]]
        return Attacked(kept["provenance"], peers, kept["outcomes"], kept.get("complete", True))
    except (TypeError, KeyError) as error:
        raise CannotError(f"{path}: not a result file that `bench attacks` wrote ({error})") from error


def build(directory: Path) -> Path:
    """Without optimization, which may do what it likes with such programs."""
    program = directory / "attack"
    command = ["c++", "-std=c++17", "-O0", "-fno-builtin", "-w", "-pthread", "-o", str(program), str(SOURCE)]
    try:
        subprocess.run(command, check=True, capture_output=True, text=True)
    except (OSError, subprocess.CalledProcessError) as error:
        raise CannotError(f"{SOURCE} cannot be compiled: {getattr(error, 'stderr', '') or error}") from error
    return program


def all_attacks(program: Path) -> list[Attack]:
    done = subprocess.run([program, "--list"], check=False, capture_output=True, text=True)
    if done.returncode != 0:
        raise CannotError(f"{program} --list ends with {done.returncode}: {runner.last_line(done.stderr)}")
    words = [line.split() for line in done.stdout.splitlines()]
    return [Attack(bug, int(size), variant) for bug, size, variant in words]


def judge(status: int, letters: str, errors: str) -> str:
    """What a run came to: its exit code, what it has told, and what stands on standard error."""
    last = next((letter for letter in reversed(letters) if letter in _ENDED_AFTER), None)
    if last is None:
        return MISSED if status == 0 else AT_ONCE
    if status != 0:
        return _ENDED_AFTER[last]
    if errors.strip():
        return REPORTED
    return NO_EFFECT if "N" in letters else MISSED


def run(program: Path, attack: Attack, peer: Peer) -> str:
    environment = {**runner.clean_environment(), **runner.environment_of(peer)}
    words = [program, attack.bug, str(attack.size), attack.variant]
    try:
        done = subprocess.run(
            words, env=environment, stdin=subprocess.DEVNULL, capture_output=True, timeout=_SECONDS, check=False
        )
    except subprocess.TimeoutExpired:
        return HANGS
    errors = done.stderr.decode(errors="replace")
    lacking = runner.not_served(peer, errors)
    if lacking:  # who has not been there has neither stopped nor missed anything
        raise CannotError(f"{attack.name}, {peer.name}: {lacking}")
    return judge(done.returncode, done.stdout.decode(errors="replace"), errors)


def checked(ours: Peer) -> Peer:
    return Peer(CHECKED, ours.version, ours.source, ours.library, {"HAKMEM_CHECK": "1"})


def attack_all(result: Attacked, step: Callable[[str], None], repetitions: int = REPETITIONS) -> Iterator[None]:
    """Fills the result; stops after each attack, when it could be kept."""
    with tempfile.TemporaryDirectory() as directory:
        program = build(Path(directory))
        for attack in all_attacks(program):
            step(attack.name)
            result.outcomes[attack.name] = {
                peer.name: [run(program, attack, peer) for _ in range(repetitions)]
                for peer in result.peers
                if not peer.missing
            }
            yield


def typical(outcomes: Sequence[str]) -> str:
    """Of several runs: the worst, since an attacker may try again."""
    return max(outcomes, key=OUTCOMES.index)


def counts(result: Attacked, peer: str) -> Counter[str]:
    """How many attacks came to what."""
    return Counter(typical(by_peer[peer]) for by_peer in result.outcomes.values() if peer in by_peer)


def stopped(result: Attacked, peer: str) -> int:
    """How many were stopped, or had no effect."""
    return sum(number for outcome, number in counts(result, peer).items() if outcome in GOOD)


def bugs(result: Attacked) -> dict[str, list[str]]:
    """Names of the attacks, by bug."""
    found: dict[str, list[str]] = {}
    for name in result.outcomes:
        found.setdefault(name.split()[0], []).append(name)
    return found


def allocators(result: Attacked) -> list[Peer]:
    """Ours first, the others by how much they stop."""
    had = [peer for peer in result.peers if not peer.missing]
    mine = sorted((peer for peer in had if peer.name in OWN), key=lambda peer: OWN.index(peer.name))
    others = [peer for peer in had if peer.name not in OWN]
    return mine + sorted(others, key=lambda peer: -stopped(result, peer.name))
