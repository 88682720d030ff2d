"""Programs that shut themselves in: from then on a system call that is not on their list fails, or ends the process."""

from __future__ import annotations

import signal
import socket
import subprocess
import time
import unittest
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from programs import ProgramTest, descendants, environment, is_shut_in, maps_library, run
from servers import accepts, free_port, server, wait_until

SESSIONS = 60


class OpenSsh(ProgramTest):
    title = "OpenSSH"
    packages = ("openssh-server", "openssh-client")
    programs = ("sshd", "ssh", "ssh-keygen")
    version = ("ssh", "-V")

    def keys(self) -> None:
        for name in ("host", "user"):
            make = ["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(self.directory / name)]
            subprocess.run(make, check=True)

    def daemon(self, port: int) -> list[str]:
        # The path of a daemon that becomes itself again must be absolute.
        command = ["/usr/sbin/sshd", "-D", "-e", "-f", "/dev/null", "-p", str(port), "-h", str(self.directory / "host")]
        settings = (
            f"AuthorizedKeysFile={self.directory}/user.pub", "StrictModes=no", "PidFile=none", "MaxStartups=100",
            "ListenAddress=127.0.0.1",
        )  # fmt: skip
        return command + [word for setting in settings for word in ("-o", setting)]

    def session(self, port: int, number: int) -> str:
        settings = ("StrictHostKeyChecking=no", "UserKnownHostsFile=/dev/null", "IdentitiesOnly=yes", "LogLevel=ERROR")
        command = ["ssh", "-F", "none", "-p", str(port), "-i", str(self.directory / "user")]
        command += [word for setting in settings for word in ("-o", setting)]
        done = subprocess.run(
            [*command, "root@127.0.0.1", f"seq {number * 1000} | sha256sum"],
            env=environment(False), stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=60,
        )  # fmt: skip
        self.assertEqual(done.returncode, 0, done.stderr)
        return done.stdout

    def answers(self, preload: bool) -> list[str]:
        port = free_port()
        log = self.directory / f"log{preload}"
        with server(self.daemon(port), preload=preload, ready=lambda: accepts(port), log=log) as process:
            # Who has said hello and nothing more waits with a child that is shut in.
            with socket.create_connection(("127.0.0.1", port)) as waiting:
                waiting.sendall(b"SSH-2.0-waits\r\n")
                shut_in: list[int] = []

                def is_waiting() -> bool:
                    shut_in[:] = [pid for pid in descendants(process.pid) if is_shut_in(pid)]
                    return bool(shut_in)

                wait_until(is_waiting, process)
                time.sleep(1)
                for pid in shut_in:
                    self.assertTrue(is_shut_in(pid), "it has ended")
                    self.assertEqual(maps_library(pid), preload)
            with ThreadPoolExecutor(8) as pool:
                return list(pool.map(lambda number: self.session(port, number), range(SESSIONS)))

    def test_sessions(self) -> None:
        """60 sessions, 8 at a time, each first served by a child that a forbidden call ends; outputs compared"""
        Path("/run/sshd").mkdir(exist_ok=True)
        self.keys()
        self.assertEqual(self.answers(True), self.answers(False))


class Man(ProgramTest):
    title = "man-db"
    packages = ("man-db", "groff-base")
    programs = ("man",)
    version = ("man", "--version")

    def test_page(self) -> None:
        """a page of 3,000 paragraphs, by way of zsoelim, tbl and groff in man's sandbox"""
        page = self.directory / "long.1"
        paragraphs = [f".SH PART {i}\n\\fBpart\\fR {i} of many, with words that fill lines\n" for i in range(3000)]
        page.write_text(".TH LONG 1\n.TS\nl l.\na\tb\n.TE\n" + "".join(paragraphs))
        done = self.compare(["man", "-P", "cat", "-l", str(page)], served="man")
        self.assertNotEqual(done.shut_in, set())


class Chrony(ProgramTest):
    title = "chrony"
    packages = ("chrony",)
    programs = ("chronyd",)
    version = ("chronyd", "--version")

    def test_server(self) -> None:
        """a server with -F 1, which a forbidden call ends, and 20 clients that ask it for the time"""
        port = free_port()
        log = self.directory / "log"
        settings = self.directory / "settings"
        settings.write_text(
            f"local stratum 5\nport {port}\nbindaddress 127.0.0.1\nallow 127.0.0.1\ncmdport 0\nbindcmdaddress /\n"
            f"pidfile {self.directory}/pid\n"
        )
        command = ["chronyd", "-d", "-x", "-F", "1", "-u", "root", "-f", str(settings)]
        ask = ["chronyd", "-Q", "-x", "-t", "20", "-f", "/dev/null", f"pidfile {self.directory}/client", "cmdport 0", "bindcmdaddress /",
               f"server 127.0.0.1 port {port} iburst maxsamples 1"]  # fmt: skip
        loaded = b"Loaded seccomp filter"
        with server(command, preload=True, ready=lambda: loaded in log.read_bytes(), log=log) as process:
            self.assertTrue(is_shut_in(process.pid) and maps_library(process.pid))
            for _ in range(20):
                done = run(ask, preload=False, seconds=30)
                self.assertEqual(done.status, 0, done.stderr.decode(errors="replace"))
            self.assertTrue(is_shut_in(process.pid))


class Tor(ProgramTest):
    packages = ("tor",)
    programs = ("tor",)
    version = ("tor", "--version")

    def answers(self, preload: bool) -> list[bytes]:
        where = self.directory / ("with" if preload else "without")
        where.mkdir(mode=0o700)
        settings = where / "torrc"
        settings.write_text(
            f"DataDirectory {where}/data\nControlSocket {where}/control\nSandbox 1\nDisableNetwork 1\nSocksPort 0\n"
            "CookieAuthentication 0\n"
        )
        command = ["tor", "--defaults-torrc", "/dev/null", "-f", str(settings)]
        # The filter refuses what libc blocks signals by for a new thread, and libc then sets a mask that it has not got: with
        # any allocator it is chance whether the process hears of SIGTERM.
        ready, log = lambda: accepts(where / "control"), where / "log"
        with server(command, preload=preload, ready=ready, log=log, stop=signal.SIGKILL) as process:
            wait_until(lambda: is_shut_in(process.pid), process)
            self.assertEqual(maps_library(process.pid), preload)
            with socket.socket(socket.AF_UNIX) as control, control.makefile("rwb") as lines:
                control.settimeout(60)
                control.connect(str(where / "control"))
                questions = [b"AUTHENTICATE"] + [b"GETINFO version info/names config/names features/names"] * 500
                lines.write(b"".join(question + b"\r\n" for question in questions) + b"QUIT\r\n")
                lines.flush()
                return lines.read().split(b"\r\n")

    def test_questions(self) -> None:
        """Sandbox 1, without a network: 500 questions to the control socket; answers compared"""
        found = self.answers(True)
        self.assertGreater(len(found), 500 * 100)
        self.assertEqual(found, self.answers(False))


if __name__ == "__main__":
    unittest.main()
