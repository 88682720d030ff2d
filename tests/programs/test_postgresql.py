"""PostgreSQL as an ordinary user: a new cluster, transactions from eight clients, vacuum, and data compared."""

from __future__ import annotations

import shutil
import signal
import subprocess
import unittest
from pathlib import Path

from programs import ProgramTest, environment, maps_library
from servers import accepts, server

USER = "postgres"

# Text, numbers, JSON, arrays, sorts and hashes larger than work_mem, indexes of several kinds.
SCRIPT = """
SET work_mem = '2MB';
CREATE TABLE item AS SELECT i AS id, md5(i::text) AS name, repeat(md5((i % 97)::text), i % 40) AS text,
    (i * 7919) % 10007 AS number, jsonb_build_object('i', i, 'list', array_fill(i % 5, ARRAY[i % 7])) AS data
    FROM generate_series(1, 60000) AS i;
CREATE INDEX ON item (number, name);
CREATE INDEX ON item USING gin (data);
CREATE INDEX ON item USING hash (name);
UPDATE item SET text = text || name WHERE number % 3 = 0;
DELETE FROM item WHERE number % 11 = 0;
VACUUM (FULL, ANALYZE) item;
CREATE TABLE joined AS SELECT a.number, count(*) AS n, string_agg(b.name, ',' ORDER BY b.id) AS names
    FROM item a JOIN item b ON a.number = b.number AND a.id <= b.id GROUP BY a.number;
REINDEX TABLE item;
"""

QUESTIONS = """
SELECT count(*), md5(string_agg(id || name || text || number || data::text, '' ORDER BY id)) FROM item;
SELECT count(*), sum(n), md5(string_agg(names, '' ORDER BY number)) FROM joined;
SELECT count(*) FROM item WHERE data @> '{"list": [3]}';
SELECT percentile_cont(0.5) WITHIN GROUP (ORDER BY length(text)), regexp_count(string_agg(name, ''), 'ab+') FROM item;
"""


def find_binaries() -> Path:
    """Debian keeps them out of the PATH."""
    found = sorted(Path("/usr/lib/postgresql").glob("*/bin/initdb"))
    if not found:
        raise AssertionError("no initdb under /usr/lib/postgresql")
    return found[-1].parent


class PostgreSQL(ProgramTest):
    packages = ("postgresql",)
    version = ("psql", "--version")

    def tool(self, name: str, *arguments: str, preload: bool = False, text: str | None = None) -> str:
        command = [str(find_binaries() / name), *arguments]
        done = subprocess.run(
            command, env=environment(preload), input=text, capture_output=True, text=True, user=USER, group=USER,
            extra_groups=[], cwd="/", timeout=300,
        )  # fmt: skip
        self.assertEqual(done.returncode, 0, done.stderr[-2000:])
        return done.stdout

    def query(self, where: Path, text: str) -> str:
        return self.tool("psql", "-h", str(where), "-qAtX", "-v", "ON_ERROR_STOP=1", "postgres", text=text)

    def transactions(self, where: Path, preload: bool) -> None:
        """Each adds the same sum to three tables and a history."""
        self.tool("pgbench", "-h", str(where), "-i", "-q", "-s", "2", "postgres", preload=preload)
        self.tool("pgbench", "-h", str(where), "-c", "8", "-j", "4", "-t", "400", "postgres", preload=preload)
        sums = self.query(
            where,
            "SELECT (SELECT sum(abalance) FROM pgbench_accounts) = sum(delta), (SELECT sum(tbalance) FROM"
            " pgbench_tellers) = sum(delta), count(*) FROM pgbench_history;",
        )
        self.assertEqual(sums.strip(), "t|t|3200")
        self.query(where, "VACUUM FULL;")

    def answers(self, preload: bool) -> str:
        where = self.directory / ("with" if preload else "without")
        where.mkdir()
        for path in (self.directory, where):
            shutil.chown(path, USER, USER)
        data = where / "data"
        self.tool("initdb", "-D", str(data), "-A", "trust", "--locale=C", "-E", "UTF8", "-N", preload=preload)
        command = [str(find_binaries() / "postgres"), "-D", str(data), "-k", str(where), "-c", "listen_addresses="]
        socket = where / ".s.PGSQL.5432"
        log = where / "log"
        log.touch()
        shutil.chown(log, USER, USER)
        with server(
            command, preload=preload, ready=lambda: accepts(socket), log=log, user=USER, stop=signal.SIGINT
        ) as process:
            self.assertEqual(maps_library(process.pid), preload)
            self.transactions(where, preload)
            self.query(where, SCRIPT)
            answers = self.query(where, QUESTIONS)
            dump = self.tool("pg_dump", "-h", str(where), "-t", "item", "-t", "joined", "postgres", preload=preload)
        # Newer versions put a random word into these two lines.
        lines = [line for line in dump.splitlines(True) if not line.startswith(("\\restrict", "\\unrestrict"))]
        return answers + "".join(lines)

    def test_cluster(self) -> None:
        """initdb as an ordinary user, pgbench with 8 clients, VACUUM FULL, indexes, joins, JSON; the dump compared"""
        without = self.answers(False)
        self.assertGreater(len(without), 1 << 20)
        self.assertEqual(self.answers(True), without)


if __name__ == "__main__":
    unittest.main()
