"""`make storm`: kills the harness 200 times at random instants of a regression run, and looks after each."""

from __future__ import annotations

import argparse
import random
import sys
import tempfile
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

from support.storm import Storm, instants


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kills", type=int, default=200)
    parser.add_argument("--seed", type=int, default=None, help="default: a new one, which is printed")
    parser.add_argument("--span", type=float, default=10.0, help="seconds of a run in which kills fall")
    parser.add_argument("--jobs", type=int, default=2, help="runs at a time")
    asked = parser.parse_args()
    seed = random.SystemRandom().randrange(1 << 31) if asked.seed is None else asked.seed
    print(f"{asked.kills} kills, seed {seed}; again: make storm ARGS='--seed {seed}'", flush=True)
    began = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="storm-") as folder, ThreadPoolExecutor(asked.jobs) as pool:
        plan = enumerate(instants(seed, asked.kills, asked.span))
        results = list(pool.map(lambda pair: _one(Path(folder), seed, *pair), plan))
    struck = Counter(outcome for outcome, _ in results)
    failures = [text for _, text in results if text]
    for text in failures:
        print(text)
    print(f"{asked.kills} kills in {time.monotonic() - began:.0f} s: {dict(struck)}, seed {seed}")
    return 1 if failures else 0


def _one(folder: Path, seed: int, number: int, after: float) -> tuple[str, str]:
    """Kill one run; return what it was in the middle of, and what was wrong."""
    storm = Storm(folder / str(number), f"{seed}-{number}")
    try:
        running = storm.strike(after)
        code = storm.judged_again()
        storm.assert_next_run_is_clean()
    except AssertionError as broken:
        text = f"kill {number} after {after:.3f} s: FAILED: {broken}"
        print(text, flush=True)
        return "failed", text
    outcome = (
        "ended before" if not running else f"judged {code}" if len(storm.runs()) > 1 else "nothing begun"
    )
    print(f"kill {number} after {after:.3f} s: {outcome}", flush=True)
    return outcome, ""


if __name__ == "__main__":
    sys.exit(main())
