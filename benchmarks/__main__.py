"""`python -m benchmarks`: measures the goals one after the other and prints the table.

The exit code says nothing about speed: 0 whether goals are met or not, 1 where one could not be measured,
2 for a wrong command line, 130 where it was interrupted; what was measured until then is shown.
"""

from __future__ import annotations

import argparse
import importlib
import json
import sys
import time
import traceback
from pathlib import Path

from benchmarks.rows import Row
from benchmarks.table import as_text, machine

#: name -> module with ``measure(rounds) -> list[Row]`` and the rounds of a full run. The quiet ones first.
AREAS = {
    "verify": ("benchmarks.verify", 15),
    "flash": ("benchmarks.flash", 31),
    "truth": ("benchmarks.truth", 41),
    "lease": ("benchmarks.lease", 15),
    "many-cards": ("benchmarks.many_cards", 5),
    "many-subclouds": ("benchmarks.many_subclouds", 5),
    "judging": ("benchmarks.judging", 9),
    "evidence": ("benchmarks.evidence", 5),
    "exploration": ("benchmarks.exploration", 7),
    "report-page": ("benchmarks.report_page", 5),
    "start-up": ("benchmarks.start_up", 7),
    "registry": ("benchmarks.registry", 5),
    "registry-proxy": ("benchmarks.registry_proxy", 5),
    "registry-clients": ("benchmarks.registry_clients", 5),
    "sweep": ("benchmarks.sweep", 1),
    "regression": ("benchmarks.regression", 1),
}


def main() -> int:
    """Run what the command line asks for; return the exit code."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("areas", nargs="*", metavar="AREA", help=f"default: all; {', '.join(AREAS)}")
    parser.add_argument("-o", "--output", choices=("table", "json"), default="table")
    parser.add_argument("--quick", action="store_true", help="few rounds: to see that it works")
    parser.add_argument("--reports", type=Path, default=Path("reports"), help="where the JSON form is kept")
    options = parser.parse_args()
    unknown = [area for area in options.areas if area not in AREAS]
    if unknown:
        parser.error(f"no such area: {', '.join(unknown)}; known: {', '.join(AREAS)}")
    before = machine()
    rows: list[Row] = []
    failed: list[str] = []
    for area in options.areas or AREAS:
        module, rounds = AREAS[area]
        print(f"measuring {area} ...", file=sys.stderr, flush=True)
        try:
            rows += importlib.import_module(module).measure(1 if options.quick else rounds)
        except Exception as error:  # noqa: BLE001 -- one that cannot be measured must not hide the others
            traceback.print_exc()
            failed.append(f"{area}: {type(error).__name__}: {error}")
        except KeyboardInterrupt:
            failed.append(f"{area} and what follows it: interrupted")
            break
    after = machine()
    document = {
        "machine": before,
        "load_after": after["load"],
        "share_after": after["share"],
        "rows": [row.to_json() for row in rows],
        "not_measured": failed,
    }
    file = options.reports / f"benchmarks-{time.strftime('%Y%m%d-%H%M%S')}.json"
    options.reports.mkdir(parents=True, exist_ok=True)
    file.write_text(json.dumps(document, indent=1) + "\n", encoding="utf-8")
    print(json.dumps(document, indent=1) if options.output == "json" else as_text(rows, before, after))
    for line in failed:
        print(f"NOT MEASURED {line}", file=sys.stderr)
    print(f"kept in {file}", file=sys.stderr)
    return 130 if failed and failed[-1].endswith("interrupted") else 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
