"""MariaDB: a new data directory, load from eight clients, and data compared."""

from __future__ import annotations

import shutil
import subprocess
import unittest

from programs import ProgramTest, environment, maps_library
from servers import accepts, server

USER = "mysql"

SCRIPT = """
CREATE DATABASE t; USE t;
CREATE TABLE item (id INT PRIMARY KEY, name VARCHAR(64), text LONGTEXT, number INT, KEY (number, name),
    FULLTEXT (text));
INSERT INTO item SELECT seq, md5(seq), repeat(concat(md5(seq % 97), ' '), seq % 40), (seq * 7919) % 10007
    FROM seq_1_to_60000;
UPDATE item SET text = concat(text, name) WHERE number % 3 = 0;
DELETE FROM item WHERE number % 11 = 0;
OPTIMIZE TABLE item;
SET SESSION group_concat_max_len = 1000000;
CREATE TABLE joined ENGINE=Aria AS SELECT a.number, count(*) AS n, group_concat(b.name ORDER BY b.id) AS names
    FROM item a JOIN item b ON a.number = b.number AND a.id <= b.id GROUP BY a.number;
SELECT count(*), md5(group_concat(md5(concat(id, name, text, number)) ORDER BY id)) FROM item;
SELECT count(*), sum(n), sum(length(names)) FROM joined;
SELECT count(*) FROM item WHERE name REGEXP 'ab+c';
CHECK TABLE item, joined;
"""


class MariaDB(ProgramTest):
    packages = ("mariadb-server", "mariadb-client")
    programs = ("mariadbd", "mariadb", "mariadb-slap", "mariadb-install-db", "mariadb-dump")
    version = ("mariadbd", "--version")

    def tool(self, command: list[str], *, preload: bool = False, text: str | None = None) -> str:
        done = subprocess.run(
            command, env=environment(preload), input=text, capture_output=True, text=True, timeout=300
        )  # fmt: skip
        self.assertEqual(done.returncode, 0, (done.stdout + done.stderr)[-2000:])
        return done.stdout

    def answers(self, preload: bool) -> str:
        where = self.directory / ("with" if preload else "without")
        where.mkdir()
        for path in (self.directory, where):
            shutil.chown(path, USER, USER)
        data = where / "data"
        socket = where / "socket"
        install = ["mariadb-install-db", "--no-defaults", f"--datadir={data}", f"--user={USER}"]
        self.tool([*install, "--auth-root-authentication-method=normal", "--skip-test-db"], preload=preload)
        command = ["mariadbd", "--no-defaults", f"--datadir={data}", f"--socket={socket}", "--skip-networking"]
        command += [f"--user={USER}", "--innodb-buffer-pool-size=128M"]
        client = ["--no-defaults", f"--socket={socket}", "-uroot"]
        with server(command, preload=preload, ready=lambda: accepts(socket), log=where / "log") as process:
            self.assertEqual(maps_library(process.pid), preload)
            answers = self.tool(["mariadb", *client, "--batch"], preload=preload, text=SCRIPT)
            slap = ["mariadb-slap", *client, "--concurrency=8", "--auto-generate-sql", "--number-of-queries=8000"]
            slap += ["--auto-generate-sql-load-type=mixed", "--number-char-cols=5", "--number-int-cols=3"]
            self.tool(slap, preload=preload)
            dump = self.tool(["mariadb-dump", *client, "--skip-dump-date", "t"], preload=preload)
        return answers + dump

    def test_server(self) -> None:
        """install-db, joins, full text and Aria tables, mariadb-slap with 8 clients; the dump compared"""
        without = self.answers(False)
        self.assertGreater(len(without), 1 << 20)
        self.assertEqual(self.answers(True), without)


if __name__ == "__main__":
    unittest.main()
