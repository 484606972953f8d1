"""Runs on a host that is a place of labgrid: had by the whole run, its workers too, and by nobody else."""

import json
import socket
from collections.abc import Iterator

import pytest
from plugin.conftest import Plan
from support.labgrid import Labgrid, labgrid

INVENTORY = """\
version: 1
default_lab: shelf
labs:
  shelf:
    hosts:
      east:
        ssh: {{address: 127.0.0.1, port: 1, user: nobody, known_hosts: none, credentials: {{env: NO_LOGIN}}}}
        labgrid: {{coordinator: '{address}', place: n3000-east}}
        cards:
          card0: {{address: 0000:1b:00.0, identity: 64:4c:36:00:00:01}}
          card1: {{address: 0000:b2:00.0, identity: 64:4c:36:00:00:02}}
"""
#: The host cannot be reached, which comes after the place: what is asked is who has that meanwhile.
PLAN = """
import json, os, pathlib
import grpc
from harness.errors import InfrastructureError
from labgrid.remote.generated import labgrid_coordinator_pb2 as messages
from labgrid.remote.generated.labgrid_coordinator_pb2_grpc import CoordinatorStub

@pytest.mark.parametrize("name", ["east/card0", "east/card1"])
def test_place(lab, name):
    with pytest.raises(InfrastructureError):
        lab.leases.hold(name)
    place = lab.entry.host("east").labgrid
    with grpc.insecure_channel(place.coordinator) as channel:
        (told,) = CoordinatorStub(channel).GetPlaces(messages.GetPlacesRequest(), timeout=30).places
    seen = {"owner": told.acquired, "process": os.getpid()}
    pathlib.Path(name.replace("/", "-") + ".seen").write_text(json.dumps(seen))
"""


@pytest.fixture
def east(plan: Plan, monkeypatch: pytest.MonkeyPatch) -> Iterator[Labgrid]:
    monkeypatch.setenv("NO_LOGIN", "never used")
    with labgrid(plan.folder) as started:
        started.add_place("n3000-east", "shelf/east/*")
        (plan.folder / "inventory.yaml").write_text(INVENTORY.format(address=started.address))
        (plan.folder / "none").touch()
        yield started


def test_two_workers_of_a_run_have_a_place_together_and_it_is_free_afterwards(
    plan: Plan, east: Labgrid
) -> None:
    ended = plan.run(PLAN, "-n2", plugins=("xdist",))
    assert ended.code == 0, ended.text
    seen = [json.loads(path.read_text()) for path in plan.folder.glob("*.seen")]
    assert len({one["process"] for one in seen}) == 2
    (owner,) = {one["owner"] for one in seen}
    assert owner.startswith(f"{socket.gethostname()}/hil:")
    assert east.owner("n3000-east") == ""


@pytest.mark.parametrize("workers", ["0", "2"])
def test_scenarios_on_a_place_that_somebody_has_are_blocked_and_say_who(
    plan: Plan, east: Labgrid, workers: str
) -> None:
    east.client("-p", "n3000-east", "acquire", user="ann")
    ended = plan.run("def test_flash(card):\n    card.reset()\n", f"-n{workers}", plugins=("xdist",))
    assert {one["state"] for one in ended.results["scenarios"]} == {"BLOCKED"}, ended.text
    assert "bench9/ann has the place n3000-east" in ended.text
    assert east.owner("n3000-east") == "bench9/ann"
