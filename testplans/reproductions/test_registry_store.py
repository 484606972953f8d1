"""Pushes that are lost although every client looks at what it is told: the registry itself deceives it.

What is stated was measured with docker-registry 2.8.2 (fact sheet of the registry, sections 3 and 5).
"""

import pytest

from harness.faults.own_store import OwnStore
from harness.lab.registry_bench import RegistryBench
from harness.registry.configuration import RegistrySettings
from harness.scenarios.prepare import NotApplicable

#: Of the store in memory, in bytes.
STORE = 256 << 20
BEFORE_MANIFEST = "before:manifest-put"


def fails(client, *deceived):
    """A client as a parameter whose push fails. ``deceived``: who says all the same that it was done."""
    verdicts = dict.fromkeys(deceived, "FALSE_SUCCESS")
    return pytest.param(client, marks=pytest.mark.hil_expects(outcome="FAILED", verdicts=verdicts))


class TestKilledWhileItWritesAManifest:
    """The manifest is a file of no bytes then, which a second push of it is said to be there already."""

    @pytest.fixture
    def registry(self, hil, hil_scenario):
        """A registry whose store is a file system of its own, in memory; that needs root."""
        if hil.lab_entry.registry(hil.registry_name).emulated is None:
            raise NotApplicable("the store of a real registry is not struck in the middle of a write")
        with (
            OwnStore(STORE) as store,
            RegistryBench(settings=RegistrySettings(storage=store.folder)) as bench,
        ):
            yield bench

    @pytest.mark.parametrize(
        "client",
        [fails("skopeo", "skopeo", "log:registry"), fails("docker-stream", "docker-stream", "log:registry")],
    )
    def test_a_second_push_is_said_to_be_done_and_nobody_can_pull(self, push, client):
        """The first push says that it failed; the second one, that all is well."""
        first = push(client, "small", at=BEFORE_MANIFEST, action="kill-at-open:manifest-blob")
        assert (first.report.result, first.truth.state.value) == ("failed", "ABSENT")
        second = push(client, "small", before=True)
        assert (second.report.result, second.truth.state.value) == ("done", "CORRUPT")
        assert any("500" in finding.reason for finding in second.truth.truths[0].findings)

    @pytest.mark.parametrize(
        "client",
        [
            fails("verified-push", "log:registry"),
            fails("docker-inspect", "log:registry"),
        ],
    )
    def test_who_asks_for_it_afterwards_is_not_fooled(self, push, client):
        """A client that reads back what it pushed says that it failed."""
        push(client, "small", at=BEFORE_MANIFEST, action="kill-at-open:manifest-blob")
        assert push(client, "small").report.result == "failed"


class TestGarbageIsCollectedBetweenLayersAndManifest:
    """Layers that no manifest names yet are garbage to the registry."""

    @pytest.mark.parametrize(
        "client",
        [
            fails("skopeo", "skopeo", "log:registry"),
            fails("docker-stream", "docker-stream", "log:registry"),
            fails("docker-inspect", "docker-inspect", "log:registry"),
            "verified-push",
        ],
    )
    def test_online(self, push, client):
        """It goes on with its caches: 201 to a manifest whose layers are gone. Reading back heals it."""
        pushed = push(client, "small", at=BEFORE_MANIFEST, action="collect-garbage")
        assert pushed.report.result == "done"
        push.look_again(pushed)

    @pytest.mark.parametrize(
        "client",
        [
            fails("skopeo"),
            fails("docker-stream"),
            fails("docker-inspect"),
            fails("docker-naive", "docker-naive"),
            fails("verified-push"),
        ],
    )
    def test_in_starlingx_way(self, push, client):
        """Read-only, collect, normal: a restarted registry refuses the manifest; who listens says so."""
        pushed = push(client, "small", at=BEFORE_MANIFEST, action="collect-garbage-read-only")
        assert pushed.truth.state.value == "ABSENT"


@pytest.mark.parametrize(
    "client",
    [
        fails("docker-naive", "docker-naive"),
        fails("docker-inspect", "docker-inspect"),
        fails("docker-stream"),
        fails("skopeo"),
    ],
)
def test_the_tag_has_an_older_image(push, client):
    """A lost push over an older image: who only looks whether the tag is there takes that for the new one."""
    old = push(client, "tiny")
    new = push(client, "small", before=True, at=BEFORE_MANIFEST, action="rotate-keys")
    assert (old.truth.state.value, new.truth.state.value) == ("COMPLETE", "WRONG")
