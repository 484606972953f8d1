"""Actions at points of a push that goes through the proxy: what the registry holds afterwards."""

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path

import pytest
from support.lab_bench import IMAGE
from support.mounted import blocked
from support.raw_push import RawRegistry

from harness.errors import BlockedError
from harness.faults.own_store import OwnStore
from harness.faults.registry_actions import RegistryAction, registry_action
from harness.faults.registry_points import FaultPoint
from harness.lab.registry_bench import RegistryBench
from harness.registry.configuration import RegistrySettings
from harness.registry.reference import parse_reference
from harness.registry.truth import Expected, TruthState

EXPECTED = Expected(IMAGE.digest, IMAGE.config.digest)


@pytest.fixture
def opened() -> Iterator[Callable[[RegistryAction], RegistryBench]]:
    """Open a bench that has what an action needs."""
    with ExitStack() as stack:

        def open_bench(action: RegistryAction) -> RegistryBench:
            settings = RegistrySettings()
            if action.needs_own_store:
                try:
                    settings = RegistrySettings(storage=stack.enter_context(OwnStore(4 << 20)).folder)
                except BlockedError as error:
                    blocked(str(error))
            return stack.enter_context(RegistryBench(settings=settings))

        yield open_bench


def pushed(bench: RegistryBench, action: RegistryAction, point: str) -> tuple[str, BaseException | None]:
    """Push through the proxy with the action at the point; return what was done, and how the push ended."""
    action.check(bench)
    action.prepare(bench)
    token = bench.lab.tokens.mint("sysinv", ["repository:a/b:pull,push"])
    client = RawRegistry(bench.proxy.endpoint.url, bench.ca_file, token)
    gate = bench.proxy.arm(FaultPoint.parse(point), repository="a/b")
    try:
        with ThreadPoolExecutor(1) as pool:
            push = pool.submit(client.push, "a/b", "v1", IMAGE)
            assert gate.wait(30, until=push), push.exception()
            said = action.fire(bench, gate)
            gate.release()
            return said, push.exception(60)
    finally:
        gate.disarm()


def state(bench: RegistryBench) -> tuple[TruthState, TruthState]:
    """Return what is true by the API and by the store."""
    reference = parse_reference("registry.local:9001/a/b:v1")
    api, store = bench.probe.image(reference, EXPECTED, restart=False).truths
    return api.state, store.state


C, A, P = TruthState.COMPLETE, TruthState.ABSENT, TruthState.PARTIAL


@pytest.mark.parametrize(
    ("name", "point", "succeeds", "truth"),
    [
        # Fact sheet of the registry, section 3: the keys of a client without a second token are lost.
        ("rotate-keys", "before:manifest-put", False, (A, A)),
        ("rotate-keys", "after:manifest-put", True, (C, C)),
        ("restart-kill", "before:manifest-put", True, (C, C)),
        ("answer-503", "before:manifest-put", False, (A, A)),
        ("answer-503", "after:manifest-put", False, (C, C)),
        ("reset", "before:blob-put", False, (A, A)),
        # Section 5: its cache has the registry take a manifest of what is not there.
        ("remove-layer-link", "before:manifest-put", True, (C, P)),
        ("collect-garbage-restart", "before:manifest-put", False, (A, A)),
        ("collect-garbage-read-only", "before:manifest-put", False, (A, A)),
        ("disk-full", "before:manifest-put", False, (A, A)),
        ("kill-at-open:layer-link", "before:blob-put", False, (A, A)),
    ],
)
def test_an_action_at_a_point(
    opened: Callable[[RegistryAction], RegistryBench],
    name: str,
    point: str,
    succeeds: bool,
    truth: tuple[TruthState, TruthState],
) -> None:
    action = registry_action(name)
    bench = opened(action)
    try:
        said, error = pushed(bench, action, point)
        assert " (connection " in said, "the request is told"
        assert (error is None) == succeeds, error
        assert state(bench) == truth
    finally:
        action.undo(bench)
    assert bench.registry.instance
    root = Path(bench.lab.registry.storage)
    assert {path.name for path in root.iterdir()} <= {"docker"}
