"""git clone and gc, of a generated repository and of this one."""

import random
import subprocess
import unittest
from pathlib import Path

from programs import ProgramTest, Run, run

FILES = 200


def history(commits: int) -> str:
    """A stream for git fast-import: some files that grow and change, the same every time."""
    chance = random.Random(1)
    contents = [[f"file {number} line {line}" for line in range(40)] for number in range(FILES)]
    parts: list[str] = []
    for commit in range(commits):
        parts.append(
            f"commit refs/heads/main\ncommitter A <a@example.org> {1600000000 + commit * 60} +0000\n"
            f"data <<END\ncommit {commit}\nEND\n"
        )
        for number in chance.sample(range(FILES), 5):
            lines = contents[number]
            lines[chance.randrange(len(lines))] = f"changed in {commit}: {chance.getrandbits(256):x}"
            lines.append(f"added in {commit}: {chance.getrandbits(512):x}")
            text = "\n".join(lines)
            parts.append(f"M 100644 inline directory{number % 7}/file{number}\ndata <<END\n{text}\nEND\n")
    return "".join(parts)


class Git(ProgramTest):
    title = "git"
    packages = ("git",)
    programs = ("git",)
    version = ("git", "--version")
    quick = True
    commits = 2500

    def work_on(self, source: Path, preload: bool) -> list[Run]:
        """Clones, collects garbage, checks and lists everything; the outputs that must not differ."""
        clone = self.directory / ("clone-with" if preload else "clone-without")
        git = ["git", "-c", "advice.detachedHead=false", "-C", str(clone)]
        commands = [
            ["git", "clone", "--quiet", "--no-local", str(source), str(clone)],
            [*git, "-c", "pack.threads=4", "repack", "-a", "-d", "-f", "-q", "--depth=50", "--window=50"],
            [*git, "gc", "--quiet", "--prune=now"],
            [*git, "fsck", "--full", "--strict", "--no-progress"],
            [*git, "log", "--stat", "-p", "--format=%H %an %ad %s"],
            [*git, "rev-list", "--all", "--objects"],
            [*git, "status", "--short"],
            [*git, "grep", "-c", "-i", "changed"],
        ]
        return [run(command, preload=preload) for command in commands]

    def compare_work_on(self, source: Path) -> None:
        served: set[str] = set()
        expected = self.work_on(source, False)
        for number, with_library in enumerate(self.work_on(source, True)):
            self.assert_same(with_library, expected[number])
            served |= with_library.served
        self.assertIn("git", served)

    def test_generated_repository(self) -> None:
        """clone, repack, gc, fsck, log -p of a history of 2,500 commits"""
        source = self.directory / "source"
        subprocess.run(["git", "init", "--quiet", "--bare", "-b", "main", str(source)], check=True)
        subprocess.run(
            ["git", "-C", str(source), "fast-import", "--quiet"], input=history(self.commits).encode(), check=True
        )
        self.compare_work_on(source)


class GitLarge(Git):
    quick = False
    commits = 5000

    def test_generated_repository(self) -> None:
        """clone, repack with 4 threads, gc, fsck, log -p, grep of a history of 5,000 commits"""
        super().test_generated_repository()

    def test_this_repository(self) -> None:
        """the same of hakmem's own repository"""
        top = Path(__file__).resolve().parents[2]
        head = subprocess.run(["git", "-C", str(top), "rev-parse", "--quiet", "--verify", "HEAD"], capture_output=True)
        if head.returncode != 0:
            self.fail("not in a git repository with commits")
        self.compare_work_on(top)


if __name__ == "__main__":
    unittest.main()
