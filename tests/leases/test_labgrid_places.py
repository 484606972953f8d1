"""Places of a real coordinator of labgrid: had by one, given back, taken over after a kill."""

import socket
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from support.labgrid import Labgrid, labgrid

from harness.errors import ConfigurationError, InfrastructureError, LeasedError, LeaseLostError
from harness.inventory.places import LabgridPlace
from harness.leases.holder import LeaseHolder
from harness.leases.labgrid import Coordinator
from harness.leases.owner import Owner, this_process
from harness.leases.places import Places
from harness.leases.store import LeaseStore

MACHINE = socket.gethostname()
TAGS = ("card0=0000:b2:00.0", "card0_identity=64:4c:36:12:34:50", "rack=7")


@pytest.fixture(scope="module")
def lab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Labgrid]:
    with labgrid(tmp_path_factory.mktemp("labgrid")) as started:
        started.add_place("n3000-east", "shelf/east/NetworkService", *TAGS)
        started.add_place("n3000-west", "*/west/*")
        started.add_place("power-only", "shelf/spare/*")
        yield started


@pytest.fixture
def east(lab: Labgrid) -> Iterator[LabgridPlace]:
    yield LabgridPlace(coordinator=lab.address, place="n3000-east")
    if lab.owner("n3000-east"):
        lab.client("-p", "n3000-east", "release", "--kick")


Made = Callable[[str], Places]


@pytest.fixture
def of_run(tmp_path: Path) -> Iterator[Made]:
    """Make the places of a run of that name; all runs have one database of leases."""
    made: list[Places] = []

    def make(run: str) -> Places:
        url = f"sqlite:///{tmp_path}/leases.sqlite"
        made.append(Places(run, lambda: LeaseHolder(lambda: LeaseStore(url), this_process(run))))
        return made[-1]

    yield make
    for each in made:
        each.close()


def test_a_coordinator_tells_its_places_with_what_belongs_to_them(lab: Labgrid) -> None:
    east, west, power = Coordinator(lab.address, "here/me").places()
    assert (east.name, east.acquired, east.tags["card0"]) == ("n3000-east", "", "0000:b2:00.0")
    told = east.services["NetworkService"]
    assert (told["address"], told["port"], told["username"]) == ("127.0.0.1", 2201, "sysadmin")
    assert west.services["NetworkService"]["address"] == "::1"
    assert power.services == {}


def test_a_run_has_a_place_until_it_ends_and_labgrid_knows_it_by_name(
    lab: Labgrid, east: LabgridPlace, of_run: Made
) -> None:
    places = of_run("20261201-1")
    places.hold(east)
    assert lab.owner("n3000-east") == f"{MACHINE}/hil:20261201-1"
    places.hold(east)  # looks that it still has it
    assert "already acquired" in lab.client("-p", "n3000-east", "acquire", fails=True)
    places.close()
    assert lab.owner("n3000-east") == ""


def test_what_somebody_has_in_labgrid_is_left_to_them(lab: Labgrid, east: LabgridPlace, of_run: Made) -> None:
    lab.client("-p", "n3000-east", "acquire", user="ann")
    with pytest.raises(LeasedError, match="bench9/ann has the place n3000-east"):
        of_run("mine").hold(east)
    assert lab.owner("n3000-east") == "bench9/ann"
    lab.client("-p", "n3000-east", "release", user="ann")
    of_run("mine").hold(east)  # the lease of the place was given back when the place was not to be had


def test_two_runs_never_have_a_place_at_once(east: LabgridPlace, of_run: Made) -> None:
    of_run("first").hold(east)
    with pytest.raises(LeasedError, match=r"first \(process"):
        of_run("second").hold(east)


def test_the_place_of_a_run_that_was_killed_is_taken_over(
    lab: Labgrid, east: LabgridPlace, of_run: Made, tmp_path: Path
) -> None:
    gone = Owner("killed", MACHINE)
    with LeaseStore(f"sqlite:///{tmp_path}/leases.sqlite") as leases:
        lease = leases.acquire(f"labgrid {lab.address}/n3000-east", "n3000-east", gone, "a run", ttl=60)
        Coordinator(lab.address, f"{MACHINE}/hil:killed").acquire("n3000-east")
        with pytest.raises(LeasedError, match="killed has the lease"):
            of_run("next").hold(east)
        leases.release(lease)  # as when it runs out; labgrid itself would let it have the place for ever
    assert lab.owner("n3000-east") == f"{MACHINE}/hil:killed"
    of_run("next").hold(east)
    assert lab.owner("n3000-east") == f"{MACHINE}/hil:next"


def test_a_place_that_was_taken_away_is_lost(lab: Labgrid, east: LabgridPlace, of_run: Made) -> None:
    places = of_run("mine")
    places.hold(east)
    lab.client("-p", "n3000-east", "release", "--kick")
    with pytest.raises(LeaseLostError, match="Nobody has the place"):
        places.hold(east)


def test_a_worker_has_what_its_run_has_and_takes_nothing(
    lab: Labgrid, east: LabgridPlace, of_run: Made
) -> None:
    worker = Places("mine", None)
    with pytest.raises(LeasedError, match="Nobody has the place n3000-east"):
        worker.hold(east)
    of_run("mine").hold(east)
    worker.hold(east)
    worker.close()
    assert lab.owner("n3000-east") == f"{MACHINE}/hil:mine"


def test_a_place_that_is_reserved_for_another_is_not_to_be_had(
    lab: Labgrid, east: LabgridPlace, of_run: Made
) -> None:
    token = lab.client("reserve", "--wait", "--shell", "rack=7", user="ann").partition("=")[2].strip()
    with pytest.raises(LeasedError, match="was not reserved for"):
        of_run("mine").hold(east)
    lab.client("cancel-reservation", token, user="ann")


def test_errors_name_coordinator_and_place(lab: Labgrid, of_run: Made) -> None:
    with pytest.raises(ConfigurationError, match="has no place 'n3000-north'") as no_place:
        of_run("mine").hold(LabgridPlace(coordinator=lab.address, place="n3000-north"))
    assert "n3000-east, n3000-west, power-only" in no_place.value.hint
    with pytest.raises(InfrastructureError, match=r"coordinator 127\.0\.0\.1:1 of labgrid does not do"):
        of_run("mine").hold(LabgridPlace(coordinator="127.0.0.1:1", place="n3000-east"))
