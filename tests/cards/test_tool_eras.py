"""Where a host has the vendor's tools, and the command lines by which they are run there.

The lines are those of sysinv's agent (`fpga.py`, `reset_n3000_fpgas.py`) in its docker, containerd and host
eras, written down here as they stand there.
"""

import shlex
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import pytest

from harness.cards.eras import DEFAULT_IMAGES, Era, Place, find_place, left_over
from harness.cards.gate import Gate
from harness.cards.truth import CardTruth
from harness.errors import HarnessBug, RefusedError
from harness.hosts.local import LocalHost
from harness.hosts.permits import Permit
from harness.hosts.protocol import CommandResult
from harness.images.facts import image_facts

REPOSITORY = "registry.local:9001/docker.io/starlingx/n3000-opae"
ADDRESS, MAC = "0000:b2:00.0", "64:4c:36:00:12:a0"
FILE = "/tmp/hil-0011.bin"
DOCKER_IMAGES = "docker images --format {{.Repository}}:{{.Tag}}"
CTR_IMAGES = "ctr --connect-timeout=2s -n=k8s.io images list -q"
PLATFORM = "ls /etc/platform/platform.conf"


class Answering(LocalHost):
    """A host that knows what it answers to some commands, and fails every other."""

    def __init__(self, answers: Mapping[str, str]) -> None:
        super().__init__("bench")
        self._answers = answers
        self.asked: list[str] = []

    def run(self, argv: Any, *, permit: Permit | None = None, **options: Any) -> CommandResult:
        assert permit is None
        self.asked.append(" ".join(argv))
        text = self._answers.get(self.asked[-1])
        return CommandResult(tuple(argv), 1 if text is None else 0, text or "", "", 0.0)


# -- finding ------------------------------------------------------------------------------------------

WHICH = "which fpgasupdate docker ctr"


@pytest.mark.parametrize(
    ("answers", "era", "image"),
    [
        ({WHICH: "/usr/bin/fpgasupdate\n"}, "host", ""),
        # A host's own tool goes first: a later StarlingX has it beside an engine for other things.
        (
            {WHICH: "/usr/bin/fpgasupdate\n/usr/bin/ctr\n", CTR_IMAGES: f"{REPOSITORY}:stx.8.0-v1.0.2\n"},
            "host",
            "",
        ),
        (
            {WHICH: "/usr/bin/docker\n", DOCKER_IMAGES: f"busybox:1\n{REPOSITORY}:stx.4.0-v1.0.0\n"},
            "docker",
            f"{REPOSITORY}:stx.4.0-v1.0.0",
        ),
        (
            {WHICH: "/usr/bin/ctr\n", CTR_IMAGES: f"sha256:00\n{REPOSITORY}:stx.8.0-v1.0.2\n"},
            "containerd",
            f"{REPOSITORY}:stx.8.0-v1.0.2",
        ),
        # Both engines: the one that has the image.
        (
            {
                WHICH: "/usr/bin/docker\n/usr/bin/ctr\n",
                CTR_IMAGES: "\n",
                DOCKER_IMAGES: f"{REPOSITORY}:stx.6.0-v1.0.1\n",
            },
            "docker",
            f"{REPOSITORY}:stx.6.0-v1.0.1",
        ),
        # Several versions: the highest, by number.
        (
            {
                WHICH: "/usr/bin/ctr\n",
                CTR_IMAGES: "".join(
                    f"{REPOSITORY}:{tag}\n" for tag in ("stx.8.0-v1.0.2", "stx.10.0-v1.0.0", "stx.6.0-v1.0.1")
                ),
            },
            "containerd",
            f"{REPOSITORY}:stx.10.0-v1.0.0",
        ),
        # A StarlingX host whose image is gone still is of its era: who runs the tool hears that it is gone.
        (
            {WHICH: "/usr/bin/ctr\n", CTR_IMAGES: "", PLATFORM: "x\n"},
            "containerd",
            f"{REPOSITORY}:stx.8.0-v1.0.2",
        ),
        (
            {WHICH: "/usr/bin/docker\n", DOCKER_IMAGES: "", PLATFORM: "x\n"},
            "docker",
            f"{REPOSITORY}:stx.6.0-v1.0.1",
        ),
        # Elsewhere an engine without the image is somebody else's.
        ({WHICH: "/usr/bin/docker\n", DOCKER_IMAGES: "busybox:1\n"}, "host", ""),
        ({}, "host", ""),
    ],
)
def test_where_the_tools_are(answers: dict[str, str], era: Era, image: str) -> None:
    place = find_place(Answering(answers))
    assert (place.era, place.image) == (era, image)


def test_a_host_with_tools_is_asked_once() -> None:
    host = Answering({WHICH: "/usr/bin/fpgasupdate\n/usr/bin/docker\n"})
    find_place(host)
    assert host.asked == [WHICH]


@pytest.mark.parametrize(
    "name",
    [
        "stx.8.0-v1.0.2",
        f"{REPOSITORY}:x;reboot",
        f"{REPOSITORY}:$(reboot)",
        f"{REPOSITORY}",
        f"--rm/n3000-opae:1 {REPOSITORY}:1",
        "registry.local:9001/evil/n3000-opae-not:1",
    ],
)
def test_a_listing_cannot_bring_words_of_its_own(name: str) -> None:
    place = find_place(Answering({WHICH: "/usr/bin/ctr\n", CTR_IMAGES: f"{name}\n"}))
    assert place.era == "host"


def test_tools_of_the_inventory_are_looked_for_and_used() -> None:
    host = Answering(
        {"which fpgasupdate docker /opt/bin/ctr": "/opt/bin/ctr\n"}
        | {"/opt/bin/ctr --connect-timeout=2s -n=k8s.io images list -q": f"{REPOSITORY}:stx.8.0-v1.0.2\n"}
    )
    place = find_place(host, {"ctr": "/opt/bin/ctr"})
    assert place.ask("rsu", "bmcimg", ADDRESS)[0] == "/opt/bin/ctr"


# -- command lines ------------------------------------------------------------------------------------

DOCKER = Place("docker", f"{REPOSITORY}:stx.4.0-v1.0.0")
CTR = Place("containerd", f"{REPOSITORY}:stx.8.0-v1.0.2")
HOST = Place("host")
CTR_RUN = "ctr -n=k8s.io run --rm --privileged"
#: As sysinv's agent has them, its folder and file exchanged for ours.
FLASH = {
    "docker": "docker run -t --privileged -e LC_ALL=en_US.UTF-8 -e LANG=en_US.UTF-8 -v /tmp:/mnt/images "
    f"{REPOSITORY}:stx.4.0-v1.0.0 fpgasupdate -y --log-level debug /mnt/images/hil-0011.bin {ADDRESS}",
    "containerd": f"{CTR_RUN} --env LC_ALL=en_US.UTF-8 --env LANG=en_US.UTF-8 --cgroup platform "
    "--mount type=bind,src=/tmp,dst=/mnt/images,options=rbind:ro "
    f"{REPOSITORY}:stx.8.0-v1.0.2 n3000-opae "
    f"fpgasupdate -y --log-level debug /mnt/images/hil-0011.bin {ADDRESS}",
    "host": f"fpgasupdate -y --log-level debug {FILE} {ADDRESS}",
}
RESET = {
    "docker": f"docker run -t --privileged {REPOSITORY}:stx.4.0-v1.0.0 rsu bmcimg {ADDRESS}",
    "containerd": f"{CTR_RUN} {REPOSITORY}:stx.8.0-v1.0.2 v1 rsu bmcimg {ADDRESS}",
    "host": f"rsu bmcimg {ADDRESS}",
}
PLACES = [DOCKER, CTR, HOST]


@pytest.mark.parametrize("place", PLACES, ids=lambda place: place.era)
def test_the_lines_are_starlingxs(place: Place) -> None:
    assert shlex.join(place.flash(FILE, ADDRESS)) == FLASH[place.era]
    assert shlex.join(place.ask("rsu", "bmcimg", ADDRESS)) == RESET[place.era]


def test_what_keeps_a_name_taken() -> None:
    assert shlex.join(CTR.containers()) == (
        f"ctr -n=k8s.io container list image=={REPOSITORY}:stx.8.0-v1.0.2"
    )
    assert shlex.join(CTR.remove("n3000-opae")) == "ctr -n=k8s.io container rm n3000-opae"
    assert DOCKER.containers() == HOST.containers() == []
    listed = (
        "CONTAINER     IMAGE    RUNTIME\n"
        f"n3000-opae    {REPOSITORY}:stx.8.0-v1.0.2    io.containerd.runc.v2\n"
    )
    assert left_over(listed, "n3000-opae")
    assert not left_over(listed, "v1")
    assert not left_over("CONTAINER IMAGE RUNTIME\nn3000-opae-2 x y\n", "n3000-opae")


def test_every_era_has_its_image_where_it_needs_one() -> None:
    assert set(DEFAULT_IMAGES) == {"docker", "containerd"}


# -- permits ------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Entry:
    irreversible: tuple[str, ...] = ("root-key", "key-cancellation")
    name: str = "card0"
    address: str = ADDRESS
    identity: str | None = MAC
    wear: None = None


DATA = b"no image"
SEEN = CardTruth(address=ADDRESS, identity=MAC, update_status="idle", flash_count=12)


def seen_with(interface: str) -> CardTruth:
    """The card with its driver's update interface in this folder."""
    return replace(SEEN, sources={"update_status": f"{interface}/status"})


@pytest.fixture
def gate() -> Gate:
    return Gate("bench", Entry(), real=False, allowed=frozenset())


def flash(gate: Gate, place: Place) -> Permit:
    return gate.flash(DATA, image_facts(DATA, "x").sha256, FILE, SEEN, place)


@pytest.mark.parametrize("place", PLACES, ids=lambda place: place.era)
def test_a_permit_covers_the_tools_command_under_the_hold_and_no_other(gate: Gate, place: Place) -> None:
    for permit, line in (
        (flash(gate, place), FLASH[place.era]),
        (gate.reset("bmcimg", SEEN, place=place), RESET[place.era]),
    ):
        lock = "flock -F -n -E 75 /run/lock/hil-64-4c-36-00-12-a0.lock"
        assert permit.argv[:2] == ("sh", "-c")
        assert permit.argv[2].endswith(f"exec {lock} {line}")
        permit.check_command("bench", permit.argv)
        for other in (
            shlex.split(line),
            [*permit.argv, "x"],
            ["sh", "-c", permit.argv[2].replace(ADDRESS, "0000:b3:00.0")],
            ["sh", "-c", permit.argv[2] + "; reboot"],
        ):
            with pytest.raises(RefusedError, match="nothing was run"):
                permit.check_command("bench", other)


@pytest.mark.parametrize("era", ["docker", "containerd"])
@pytest.mark.parametrize(
    "image", ["", "busybox:1", f"{REPOSITORY}:x y", f"{REPOSITORY}:x;reboot", f"../{REPOSITORY}:1"]
)
def test_no_permit_for_an_image_that_is_none_of_the_tools(gate: Gate, era: Era, image: str) -> None:
    place = Place(era, image)
    for issue in (
        lambda: flash(gate, place),
        lambda: gate.reset("bmcimg", SEEN, place=place),
        lambda: gate.report("fme", ADDRESS, place),
        lambda: gate.clear("n3000-opae", place),
    ):
        with pytest.raises(HarnessBug):
            issue()


def test_reports_and_left_overs_have_permits_of_their_own(gate: Gate) -> None:
    assert shlex.join(gate.report("fme", ADDRESS, CTR).argv) == (
        f"{CTR_RUN} {REPOSITORY}:stx.8.0-v1.0.2 v1 fpgainfo fme {ADDRESS}"
    )
    assert gate.clear("v1", CTR).argv == ("ctr", "-n=k8s.io", "container", "rm", "v1")
    for wrong in ("errors", "fme; reboot", ""):
        with pytest.raises(HarnessBug):
            gate.report(wrong, ADDRESS, CTR)
    for wrong in ("other", "", "n3000-opae v1"):
        with pytest.raises(HarnessBug):
            gate.clear(wrong, CTR)


# -- interfaces of the driver generations --------------------------------------------------------------

BMC = "/sys/bus/pci/devices/0000:b2:00.0/fpga_region/region0/dfl-fme.0/dfl_dev.0/spi1.0"
SECURITY_MANAGER = f"{BMC}/m10bmc-secure.5.auto/ifpga_sec_mgr/ifpga_sec0/update"
OLD_MANAGER = "/sys/bus/pci/devices/0000:b2:00.0/fpga/fme/spi0.0/ifpga_sec_mgr/ifpga_sec0"
IMAGE_LOAD = f"{BMC}/n3000bmc-sec-update.5.auto/fpga_image_load/fpga_image_load0"


def test_a_file_is_named_to_the_security_manager(gate: Gate) -> None:
    path = "/usr/lib/firmware/hil-0011.bin"
    digest = image_facts(DATA, "x").sha256
    permit = gate.kernel_upload(DATA, digest, path, seen_with(SECURITY_MANAGER))
    assert f"printf %s hil-0011.bin > {SECURITY_MANAGER}/filename" in permit.argv[2]
    with pytest.raises(HarnessBug, match="not where the kernel looks"):
        gate.kernel_upload(DATA, digest, FILE, seen_with(SECURITY_MANAGER))
    assert shlex.join(gate.cancel(f"{SECURITY_MANAGER}/cancel").argv) == (
        f"sh -c 'echo 1 > {SECURITY_MANAGER}/cancel'"
    )


@pytest.mark.parametrize("interface", [OLD_MANAGER, IMAGE_LOAD, "/dev/ifpga_sec0", "/dev/fpga_image_load0"])
def test_the_interfaces_of_generations_a_and_c_are_written_to_by_no_permit(
    gate: Gate, interface: str
) -> None:
    digest = image_facts(DATA, "x").sha256
    for path in (FILE, "/usr/lib/firmware/hil-0011.bin"):
        with pytest.raises(HarnessBug):
            gate.kernel_upload(DATA, digest, path, seen_with(interface))
    with pytest.raises(HarnessBug):
        gate.cancel(f"{interface}/cancel")
