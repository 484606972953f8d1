"""How long an engine waited between its tries to upload a layer, told from what it says to its client."""

from __future__ import annotations

import re
from collections import Counter

#: The engine's stream, and what Docker's command line makes of it.
_RETRYING = re.compile(r"Retrying in \d+ seconds?")
_LAYER = re.compile(r'"id":"(?P<sdk>[0-9a-f]{12})"|^(?P<cli>[0-9a-f]{12}): ')


def seconds_waited(text: str) -> float:
    """Return how long the layer that waited longest did: they wait beside each other.

    An engine counts a wait down, a line for each layer and second (dockerd 20.10: first 5 s, then 10 s). A
    second counts when something is said of the layer after it: a push that fails meanwhile cuts it short.
    """
    waited: Counter[str] = Counter()
    waiting = set()
    for line in text.splitlines():
        if (found := _LAYER.search(line)) is None:
            continue
        layer = found["sdk"] or found["cli"]
        waited[layer] += layer in waiting
        waiting.discard(layer)
        if _RETRYING.search(line):
            waiting.add(layer)
    return float(max(waited.values(), default=0))
