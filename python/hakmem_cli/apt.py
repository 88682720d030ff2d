"""Debian's packages, installed by name."""

from __future__ import annotations

import os
import shutil
import subprocess


def is_installed(package: str) -> bool:
    """As the package manager sees it. Where there is none, what the package brings may be there all the same."""
    if shutil.which("dpkg-query") is None:
        return False
    done = subprocess.run(
        ["dpkg-query", "--show", "--showformat=${db:Status-Status}", package],
        capture_output=True,
        text=True,
        check=False,
    )
    return done.stdout == "installed"


def may_install() -> bool:
    return os.geteuid() == 0 and shutil.which("apt-get") is not None


def install(names: list[str]) -> str | None:
    """Installs Debian packages; the reason if that fails."""
    if not may_install():
        return "only root may install it"
    environment = dict(os.environ, DEBIAN_FRONTEND="noninteractive")
    # Services that a package would start are none of a test's business.
    environment["RUNLEVEL"] = "1"
    wait = "DPkg::Lock::Timeout=600"
    for step in (
        ["apt-get", "update", "-qq", "-o", wait],
        ["apt-get", "install", "-y", "-qq", "--no-install-recommends", "-o", wait, *names],
    ):
        done = subprocess.run(
            step, env=environment, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False
        )
        if done.returncode != 0:
            reason = (done.stderr or done.stdout).strip().rpartition("\n")[2]
            return f"{' '.join(step)} failed: {reason}"
    return None
