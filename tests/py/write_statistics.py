"""Writes the table of docs/statistics.md. Run by hand, after a change of src/api/metrics_table.h."""

from __future__ import annotations

import sys

import statistics_fields
from support import ROOT

sys.path.insert(0, str(ROOT / "python"))

from hakmem_cli import generated  # noqa: E402


def main() -> None:
    document = statistics_fields.DOCUMENT
    text = generated.replaced(
        document.read_text(), statistics_fields.BEGIN, statistics_fields.END, statistics_fields.table()
    )
    document.write_text(text)


if __name__ == "__main__":
    main()
