"""`hakmem soak`: the long run of tests/soak with the library preloaded, in place of this process."""

from __future__ import annotations

from hakmem_cli import build, packages, run

_PROGRAM = build.BUILD / "release" / "tests" / "soak" / "soak"


def soak(words: list[str]) -> int:
    """The options are the program's own, --help too."""
    build.ensure_tools()
    packages.ensure_cmocka()
    build.build_test("soak")
    return run.run([str(_PROGRAM), *words], run.How())
