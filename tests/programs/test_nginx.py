"""nginx under load, with its configuration reloaded meanwhile."""

from __future__ import annotations

import gzip
import hashlib
import signal
import subprocess
import time
import unittest
import urllib.request
from pathlib import Path

from programs import ProgramTest, descendants, environment, maps_library
from servers import accepts, free_port, server

CONFIGURATION = """
daemon off; worker_processes 2; pid {where}/pid; error_log {where}/error.log;
events {{ worker_connections 512; }}
http {{
    access_log {where}/access.log;
    client_body_temp_path {where}/body; proxy_temp_path {where}/proxy; fastcgi_temp_path {where}/fastcgi;
    uwsgi_temp_path {where}/uwsgi; scgi_temp_path {where}/scgi;
    gzip on; gzip_types *; gzip_min_length 100;
    server {{
        listen 127.0.0.1:{port};
        root {where}/files;
        location /again/ {{ proxy_pass http://127.0.0.1:{port}/; proxy_buffering on; }}
    }}
}}
"""


class Nginx(ProgramTest):
    title = "nginx"
    packages = ("nginx-light", "apache2-utils")
    programs = ("nginx", "ab")
    version = ("nginx", "-v")

    def load(self, port: int, path: str, process: subprocess.Popen[bytes]) -> None:
        """Keep-alive and compressed, with reloads while it runs. A reload closes connections under ab's feet: -r."""
        command = ["ab", "-q", "-r", "-k", "-n", "20000", "-c", "40", "-H", "Accept-Encoding: gzip"]
        command.append(f"http://127.0.0.1:{port}/{path}")
        with subprocess.Popen(
            command, env=environment(False), stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
        ) as load:
            for _ in range(3):
                time.sleep(0.3)
                process.send_signal(signal.SIGHUP)
            output, _ = load.communicate(timeout=200)
        self.assertEqual(load.returncode, 0, f"{path} of {process.args}: {output[-2000:]}")
        self.assertIn("Complete requests:      20000", output)

    def fetch(self, port: int, path: str) -> str:
        request = urllib.request.Request(f"http://127.0.0.1:{port}/{path}", headers={"Accept-Encoding": "gzip"})
        with urllib.request.urlopen(request, timeout=30) as answer:
            body = answer.read()
            if answer.headers.get("Content-Encoding") == "gzip":
                body = gzip.decompress(body)
            return f"{answer.status} {len(body)} {hashlib.sha256(body).hexdigest()}"

    def files(self, where: Path) -> list[str]:
        (where / "files").mkdir(parents=True)
        names = []
        for number, size in enumerate((0, 1, 700, 5000, 70000, 3000000)):
            (where / "files" / f"f{number}.txt").write_bytes((f"line of file {number}\n" * size)[:size].encode())
            names.append(f"f{number}.txt")
        return names

    def answers(self, preload: bool) -> list[str]:
        where = self.directory / ("with" if preload else "without")
        names = self.files(where)
        self.directory.chmod(0o755)
        port = free_port()
        (where / "conf").write_text(CONFIGURATION.format(where=where, port=port))
        command = ["nginx", "-c", str(where / "conf"), "-e", str(where / "error.log")]
        with server(
            command, preload=preload, ready=lambda: accepts(port), log=where / "log", stop=signal.SIGQUIT
        ) as process:
            for path in ("f3.txt", "again/f4.txt"):
                self.load(port, path, process)
            serving = [maps_library(pid) for pid in descendants(process.pid)]
            self.assertGreaterEqual(len(serving), 3)
            self.assertEqual(set(serving), {preload})
            return [self.fetch(port, prefix + name) for prefix in ("", "again/") for name in names]

    def test_load(self) -> None:
        """static and proxied files, gzip, 40 keep-alive clients, reloads under load; contents compared"""
        self.assertEqual(self.answers(True), self.answers(False))


if __name__ == "__main__":
    unittest.main()
