"""The sqlite3 shell: a long script in memory and on disk, everything read back."""

from __future__ import annotations

import unittest

from programs import ProgramTest

SCRIPT = """
PRAGMA journal_mode = {journal};
CREATE TABLE item (id INTEGER PRIMARY KEY, name TEXT, text BLOB, number INT);
WITH RECURSIVE seq(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM seq WHERE i < 150000)
    INSERT INTO item SELECT i, hex(i * 7919), printf('%.*c', i % 300, 'x') || i, (i * 7919) % 10007 FROM seq;
CREATE INDEX by_number ON item (number, name);
CREATE INDEX by_name ON item (name COLLATE NOCASE);
UPDATE item SET text = text || name WHERE number % 3 = 0;
DELETE FROM item WHERE number % 11 = 0;
CREATE VIRTUAL TABLE words USING fts5 (body);
INSERT INTO words SELECT 'word' || (number % 500) || ' ' || name FROM item;
SELECT count(*) FROM words WHERE words MATCH 'word17 OR word42';
CREATE TABLE joined AS SELECT a.number, count(*) AS n, group_concat(b.name) AS names
    FROM item a JOIN item b ON a.number = b.number AND a.id <= b.id GROUP BY a.number;
SELECT count(*), sum(n), sum(length(names)) FROM joined;
SELECT json_group_array(json_object('n', number, 'sum', total)) FROM
    (SELECT number, sum(id) OVER (PARTITION BY number % 10 ORDER BY id) AS total FROM item LIMIT 3000);
PRAGMA integrity_check;
VACUUM;
PRAGMA integrity_check;
.dump joined
"""


class Sqlite(ProgramTest):
    title = "SQLite"
    packages = ("sqlite3",)
    programs = ("sqlite3",)
    version = ("sqlite3", "--version")

    def compare_script(self, database: str, journal: str) -> None:
        script = self.directory / "script"
        script.write_text(SCRIPT.format(journal=journal))
        # A database on disk must not be there before the second run.
        command = ["sh", "-c", f"rm -f {database} && exec sqlite3 -batch {database} < {script}"]
        result = self.compare(command, served="sqlite3", cwd=self.directory)
        self.assertEqual((result.status, result.stderr), (0, b""))
        self.assertEqual(result.stdout.splitlines().count(b"ok"), 2)

    def test_in_memory(self) -> None:
        """150,000 rows in memory: indexes, full text, joins, windows, JSON, VACUUM, integrity_check, .dump"""
        self.compare_script(":memory:", "memory")

    def test_on_disk(self) -> None:
        """the same on disk with a write-ahead log"""
        self.compare_script("database", "wal")


if __name__ == "__main__":
    unittest.main()
