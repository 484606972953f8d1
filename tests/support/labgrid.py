"""A real coordinator and a real exporter of labgrid on loopback."""

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import grpc
from labgrid.remote.generated import labgrid_coordinator_pb2 as messages
from labgrid.remote.generated.labgrid_coordinator_pb2_grpc import CoordinatorStub
from support.processes import wait_until

PROGRAMS = Path(sys.executable).parent
EXPORTED = """
east:
  NetworkService: {address: 127.0.0.1, port: 2201, username: sysadmin}
west:
  NetworkService: {address: "::1", username: root, password: never-shown}
spare:
  NetworkPowerPort: {model: netio, host: pdu.example, index: 1}
"""


class Labgrid:
    """What a test asks of the installation, past the code under test: labgrid's own client."""

    def __init__(self, address: str, folder: Path) -> None:
        self.address = address
        self._folder = folder

    def client(self, *words: str, user: str = "hand", fails: bool = False) -> str:
        """Run labgrid-client as ``bench9/USER``; return what it printed."""
        environment = os.environ | {"LG_HOSTNAME": "bench9", "LG_USERNAME": user}
        done = subprocess.run(
            [str(PROGRAMS / "labgrid-client"), "-x", self.address, *words],
            env=environment,
            cwd=self._folder,
            capture_output=True,
            text=True,
            timeout=60,
        )
        assert fails or done.returncode == 0, done.stdout + done.stderr
        return done.stdout + done.stderr

    def add_place(self, name: str, match: str, *tags: str) -> None:
        """Make a place of the resources that ``match`` (``exporter/group/class``), with tags."""
        told = dict(tag.split("=") for tag in tags)
        with grpc.insecure_channel(self.address) as channel:
            stub = CoordinatorStub(channel)
            stub.AddPlace(messages.AddPlaceRequest(name=name), timeout=30)
            stub.AddPlaceMatch(messages.AddPlaceMatchRequest(placename=name, pattern=match), timeout=30)
            stub.SetPlaceTags(messages.SetPlaceTagsRequest(placename=name, tags=told), timeout=30)

    def owner(self, place: str) -> str:
        """Return who has a place, as the coordinator itself tells."""
        with grpc.insecure_channel(self.address) as channel:
            told = CoordinatorStub(channel).GetPlaces(messages.GetPlacesRequest(), timeout=30)
        return next(str(entry.acquired) for entry in told.places if entry.name == place)


@contextmanager
def labgrid(folder: Path) -> Iterator[Labgrid]:
    """Start a coordinator on a free port, and an exporter of :data:`EXPORTED` named ``shelf``."""
    (folder / "exports.yaml").write_text(EXPORTED)
    with ExitStack() as open_:
        coordinator = _started(open_, folder, "coordinator", "--listen", "127.0.0.1:0")
        log = folder / "coordinator.log"

        def listening() -> str:
            assert coordinator.poll() is None, log.read_text()
            lines = [line for line in log.read_text().splitlines() if line.startswith("listening on ")]
            return lines[0].removeprefix("listening on ") if lines else ""

        wait_until(listening, "the coordinator to listen")
        found = Labgrid(listening(), folder)
        words = ("--coordinator", found.address, "--name", "shelf", "--hostname", "127.0.0.1", "exports.yaml")
        _started(open_, folder, "exporter", *words)
        wait_until(lambda: "shelf/west/NetworkService" in found.client("resources"), "the exports")
        yield found


def _started(open_: ExitStack, folder: Path, program: str, *words: str) -> "subprocess.Popen[bytes]":
    with (folder / f"{program}.log").open("wb") as log:
        process = subprocess.Popen(
            [str(PROGRAMS / f"labgrid-{program}"), *words],
            cwd=folder,
            env=os.environ | {"PYTHONUNBUFFERED": "1"},
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            start_new_session=True,
        )
    open_.callback(_ended, process)
    return process


def _ended(process: "subprocess.Popen[bytes]") -> None:
    os.killpg(process.pid, signal.SIGKILL)
    process.wait()
