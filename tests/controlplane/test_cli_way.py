"""The way in by the command `system` over SSH: the same as REST says, and no trap counts as success."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import fields, replace
from typing import Any

import pytest
from support.served_system import Serve, Served
from support.starlingx_lab import CARD

from harness.controlplane.changes import Change
from harness.controlplane.cli import CliWay
from harness.controlplane.gate import Permits
from harness.controlplane.protocol import DeviceImage, Said, Upload
from harness.controlplane.reading import from_table
from harness.controlplane.rest import RestWay
from harness.controlplane.tables import only_table
from harness.emulator.programs.base import Executable, Invocation
from harness.errors import (
    ControlPlaneError,
    HarnessError,
    InfrastructureError,
    LoginRefusedError,
    NoSuchRecordError,
    NotOfferedError,
    RefusedError,
)
from harness.judgement.values import Unknown

NOBODY = "00000000-0000-4000-8000-000000000000"
OPENRC = "/etc/platform/openrc"


@pytest.fixture
def way(served: Served) -> CliWay:
    return CliWay("system1", served.controller())


def do(way: CliWay, change: Change) -> list[Any]:
    """Carry out a change past the interlock, which has tests of its own."""
    return way.carry_out(change, Permits(change, "a test"))


def replace_program(served: Served, run: Callable[[Invocation], int]) -> None:
    served.lab.machine.vfs.unlink("/usr/bin/system")
    served.lab.machine.vfs.place("/usr/bin/system", Executable("system", run))


def edit_openrc(served: Served, edit: Callable[[str], str]) -> None:
    vfs = served.lab.machine.vfs
    vfs.write(OPENRC, edit(vfs.read(OPENRC).decode()).encode())


# -- reading ----------------------------------------------------------------------------------------------


def agree(by_command: list[Any], by_rest: list[Any]) -> None:
    """Both ways say the same of the same, but for what one of them does not show."""
    assert len(by_command) == len(by_rest) > 0
    for said, other in zip(by_command, by_rest, strict=True):
        assert type(said) is type(other)
        pairs = {
            field.name: (getattr(said, field.name), getattr(other, field.name)) for field in fields(said)
        }
        known = {name: pair for name, pair in pairs.items() if not any(isinstance(v, Unknown) for v in pair)}
        assert len(known) >= 4
        assert all(one == two for one, two in known.values()), known


@pytest.fixture(params=["head", "stx-2020-07"])
def both(serve: Serve, request: pytest.FixtureRequest) -> Iterator[tuple[CliWay, RestWay, Served]]:
    """Both ways into a system that has images, labels and a state; of today, and of Python 2."""
    old = {"era": "docker", "generation": "A"} if request.param == "stx-2020-07" else {}
    served = serve(request.param, **old)
    uuid = served.lab.upload(bitstream_id="0x11", name="one-image")
    served.lab.upload(kind="key-revocation", revoke_key_id="3")
    served.lab.assign("k=v")
    served.lab.apply(uuid, "k=v", "floating=it's")
    rest = RestWay("system1", served.login)
    yield CliWay("system1", served.controller()), rest, served
    rest.close()


def test_both_ways_say_the_same(both: tuple[CliWay, RestWay, Served]) -> None:
    cli, rest, _ = both
    agree(cli.images(), sorted(rest.images(), key=lambda image: str(image.bitstream_type)))
    agree([cli.image("one-image")], [rest.image("one-image")])
    agree(cli.states(), rest.states())
    agree(cli.labels(), rest.labels())
    agree(cli.hosts(), rest.hosts())
    agree([cli.host("controller-0")], [rest.host("controller-0")])
    agree(cli.devices("controller-0"), rest.devices("controller-0"))
    agree([cli.device("controller-0", CARD)], [rest.device("controller-0", CARD)])
    (alarm,) = rest.alarms()
    assert alarm.alarm_id == "900.006"
    agree(cli.alarms(), [replace(alarm, reason_text=str(alarm.reason_text).rstrip())])


@pytest.mark.parametrize("width", [80, 120, 150, 190, 200, 230, 280, 500])
def test_wrapped_lists_say_the_same(served: Served, way: CliWay, width: int) -> None:
    uuid = served.lab.upload(bitstream_id="0x23000410010310")
    served.lab.upload(bitstream_id="2")
    served.lab.apply(uuid, "subcloud=abc", "subcloud3=3", "subcloud4=4", "subcloud5=5")
    shown = served.lab.run(f"source {OPENRC}; COLUMNS={width} system device-image-list")
    wrapped: list[Said] = [from_table(DeviceImage, row) for row in only_table(shown).rows]
    assert wrapped == way.images()


def test_region_of_the_system(served: Served) -> None:
    served.lab.upload()
    assert len(CliWay("system1", served.controller(), region="RegionOne").images()) == 1
    with pytest.raises(ControlPlaneError, match="in Mars region not found"):
        CliWay("system1", served.controller(), region="Mars").images()


def test_an_image_whose_name_has_a_blank(served: Served, way: CliWay) -> None:
    uuid = served.lab.upload(name="two words")
    assert way.image("two words").uuid == uuid


def test_nothing_there_is_an_empty_list(way: CliWay) -> None:
    assert (way.images(), way.states(), way.labels(), way.alarms()) == ([], [], [], [])


# -- changing ---------------------------------------------------------------------------------------------


def test_life_of_an_image(served: Served, way: CliWay) -> None:
    content = bytes(range(256)) * 300
    upload = Upload(
        content, "a.bin", "functional", bitstream_id="0x2", name="two words", description="-x 'y'", bmc=True
    )
    (image,) = do(way, Change("image-upload", image=upload))
    assert (image.bitstream_id, image.name, image.description, image.bmc) == (
        "0x2", "two words", "-x 'y'", True
    )  # fmt: skip
    stored = list(served.lab.system.images_folder.iterdir())
    assert [path.read_bytes() for path in stored] == [content]
    assert [name for name in served.lab.machine.vfs.listdir("/tmp") if name.startswith("hil-")] == []
    assigned = do(way, Change("label-assign", "controller-0", CARD, (("k", "v"), ("l", "w x"))))
    assert [(label.label_key, label.label_value) for label in assigned] == [("k", "v"), ("l", "w x")]
    (applied,) = do(way, Change("image-apply", image.uuid, labels=(("k", "v"), ("new", "1"))))
    assert applied.applied_labels == (("k", "v"), ("new", "1"))
    (removed,) = do(way, Change("image-remove", image.uuid, labels=(("k", "v"), ("new", "1"))))
    assert removed.applied is False
    do(way, Change("label-remove", "controller-0", CARD, keys=("k", "l")))
    do(way, Change("image-delete", image.uuid))
    assert (way.images(), way.labels(), way.states()) == ([], [], [])


def test_locking_a_host(served: Served, way: CliWay) -> None:
    (answer,) = do(way, Change("host-lock", "controller-0"))
    assert answer.hostname == "controller-0"
    served.lab.pass_time(60)
    assert way.host("controller-0").administrative == "locked"


def test_a_controller_that_asks_to_confirm_is_told_not_to(served: Served, way: CliWay) -> None:
    seen: list[str | None] = []

    def program(run: Invocation) -> int:
        seen.append(run.env.get("CLI_CONFIRMATIONS"))
        run.out(f"Deleted device image: {NOBODY}\n")
        return 0

    edit_openrc(served, lambda text: text + "export CLI_CONFIRMATIONS=enabled\n")
    replace_program(served, program)
    do(way, Change("image-delete", NOBODY))
    assert seen == ["disabled"]


@pytest.mark.parametrize(
    "words",
    [
        ["system", "device-image-apply", NOBODY],
        ["system", "device-image-delete", NOBODY],
        ["system", "host-lock", "controller-0"],
        ["system", "--os-region-name", "device-image-list", "host-lock", "controller-0"],
        ["system", "device-image-list", "--os-password", "x"],
        ["system"],
    ],
)
def test_without_a_permit_only_reading_is_run(served: Served, words: list[str]) -> None:
    with pytest.raises(RefusedError, match="not declared read-only"):
        served.controller().run(words)


# -- traps ------------------------------------------------------------------------------------------------


def test_upload_that_ends_well_with_an_empty_table(served: Served, way: CliWay) -> None:
    """A user who may not upload: the API answers 403, the command prints an empty table and exits with 0."""
    edit_openrc(served, lambda text: text.replace("OS_USERNAME=admin", "OS_USERNAME=reader"))
    upload = Upload(b"image", "a.bin", "functional", bitstream_id="2")
    with pytest.raises(ControlPlaneError, match=r"did not take a\.bin: .* no uuid"):
        do(way, Change("image-upload", image=upload))
    assert way.evidence.exit_code == 0
    assert served.lab.get("/device_images") == {"device_images": []}
    assert [name for name in served.lab.machine.vfs.listdir("/tmp") if name.startswith("hil-")] == []


def test_upload_that_is_refused(way: CliWay) -> None:
    upload = Upload(b"image", "a.bin", "functional", pci_device="0b31", bitstream_id="2")
    with pytest.raises(ControlPlaneError, match="Invalid PCI vendor/device ID: 8086 0b31"):
        do(way, Change("image-upload", image=upload))


@pytest.mark.parametrize(
    "ask",
    [
        lambda way: way.images(),
        lambda way: way.host("controller-0"),
        lambda way: do(way, Change("image-apply", NOBODY)),
        lambda way: do(way, Change("image-delete", NOBODY)),
    ],
)
def test_commands_that_end_well_and_say_nothing(
    served: Served, way: CliWay, ask: Callable[[CliWay], Any]
) -> None:
    replace_program(served, lambda run: 0)
    with pytest.raises(ControlPlaneError, match="showed nothing at all"):
        ask(way)


def test_without_keyctl_nothing_counts_as_done(served: Served, way: CliWay) -> None:
    """Trap 2, of a controller that lacks it: an image that is not deleted, labels that are not gone."""
    uuid = served.lab.upload()
    served.lab.assign("k=v")
    served.lab.machine.condition("missing-keyctl", True)
    upload = Upload(b"image", "b.bin", "functional", bitstream_id="3")
    for change in (
        Change("image-delete", uuid),
        Change("image-upload", image=upload),
        Change("label-remove", "controller-0", CARD, keys=("k",)),
        Change("host-lock", "controller-0"),
    ):
        with pytest.raises(ControlPlaneError, match="showed nothing at all") as caught:
            do(way, change)
        assert "keyctl" in caught.value.hint
    assert way.alarms() == []
    served.lab.machine.condition("missing-keyctl", False)
    assert [image.uuid for image in way.images()] == [uuid]
    assert [label.label_key for label in way.labels()] == ["k"]


def test_tables_that_cannot_be_drawn_are_no_answer_of_the_system(served: Served, way: CliWay) -> None:
    """Trap 3: the library of the tables is too old for the release of Debian."""
    served.lab.machine.vfs.write("/usr/lib/python3/dist-packages/prettytable-0.7.2.egg-info", b"")
    with pytest.raises(InfrastructureError, match="cannot draw its tables on controller-0") as caught:
        way.hosts()
    assert not isinstance(caught.value, ControlPlaneError)
    assert way.host("controller-0").hostname == "controller-0"


def test_a_controller_that_really_asks_to_confirm(served: Served, way: CliWay) -> None:
    """Trap 4: nobody is there to answer, and what is asked is done all the same."""
    uuid = served.lab.upload()
    edit_openrc(served, lambda text: text + "export CLI_CONFIRMATIONS=enabled\n")
    do(way, Change("image-delete", uuid))
    assert way.images() == []


@pytest.mark.parametrize(
    "change",
    [
        Change("image-apply", NOBODY),
        Change("image-delete", NOBODY),
        Change("host-update", "controller-0"),
        Change("label-assign", "controller-0", CARD, (("k", "v"),)),
    ],
)
def test_output_of_something_else_is_no_success(served: Served, way: CliWay, change: Change) -> None:
    def program(run: Invocation) -> int:
        run.out("+----------+-------+\n| Property | Value |\n+----------+-------+\n")
        run.out("| uuid     | other |\n| hostname | other |\n+----------+-------+\n")
        return 0

    replace_program(served, program)
    with pytest.raises(ControlPlaneError, match="no success"):
        do(way, change)


def test_label_that_stays_is_no_success(served: Served, way: CliWay) -> None:
    served.lab.assign("k=v")
    real = served.lab.machine.programs["system"]

    def program(run: Invocation) -> int:
        return 0 if "host-device-label-remove" in run.argv else real(run)

    replace_program(served, program)
    with pytest.raises(ControlPlaneError, match="no success"):
        do(way, Change("label-remove", "controller-0", CARD, keys=("k",)))


def test_login_file_that_prints(served: Served, way: CliWay) -> None:
    served.lab.upload()
    edit_openrc(served, lambda text: text + "echo +---+\necho '| welcome |'\n")
    assert len(way.images()) == 1
    do(way, Change("image-apply", way.images()[0].uuid))


def test_login_file_that_is_missing(served: Served, way: CliWay) -> None:
    served.lab.machine.vfs.unlink(OPENRC)
    with pytest.raises(InfrastructureError, match="You must provide a username"):
        way.images()


def test_wrong_password_is_tried_once(served: Served, way: CliWay) -> None:
    edit_openrc(served, lambda text: text + "export OS_PASSWORD=other\n")
    runs: list[str] = []
    real = served.lab.machine.programs["system"]

    def program(run: Invocation) -> int:
        runs.append(run.argv[1])
        return real(run)

    replace_program(served, program)
    asks = (way.images, way.hosts, lambda: do(way, Change("image-delete", NOBODY)))
    for ask in asks:
        with pytest.raises(LoginRefusedError, match="Invalid Identity credentials"):
            ask()
    assert len(runs) == 1


@pytest.mark.parametrize(
    ("ask", "said"),
    [
        (lambda way: way.image("nobody"), "Device image nobody could not be found"),
        (lambda way: way.host("compute-9"), "host not found: compute-9"),
        (lambda way: way.device("controller-0", "0000:ff:00.0"), "PCI devices not found"),
        (lambda way: do(way, Change("image-apply", NOBODY)), "image does not exist"),
        (lambda way: do(way, Change("image-delete", NOBODY)), "could not be found"),
        (lambda way: do(way, Change("host-update", "compute-9")), "host not found"),
        (lambda way: do(way, Change("label-remove", "controller-0", CARD, keys=("k",))), "no label k"),
    ],
)
def test_what_is_not_there(way: CliWay, ask: Callable[[CliWay], Any], said: str) -> None:
    with pytest.raises(NoSuchRecordError, match=said):
        ask(way)


def test_what_is_not_offered(served: Served, way: CliWay) -> None:
    served.lab.machine.condition("missing-fm", True)
    with pytest.raises(NotOfferedError, match="no command `fm`"):
        way.alarms()

    def without(run: Invocation) -> int:
        run.err("usage: system [--version]\nsystem: error: argument <subcommand>: invalid choice: 'x'\n")
        return 2

    replace_program(served, without)
    with pytest.raises(NotOfferedError, match="no such command"):
        way.states()
    served.lab.machine.programs.pop("system")
    served.lab.machine.vfs.unlink("/usr/bin/system")
    with pytest.raises(NotOfferedError, match="no command `system`"):
        way.states()


def test_text_of_the_system_in_the_error(way: CliWay) -> None:
    with pytest.raises(ControlPlaneError, match="not in the process of updating"):
        do(way, Change("host-abort", "controller-0"))


def test_every_error_is_one_of_the_family(served: Served, way: CliWay) -> None:
    """Output that is cut off anywhere: a result, or an error of the harness; nothing else."""
    served.lab.upload()
    whole = served.lab.run(f"source {OPENRC}; system device-image-list --nowrap")
    cuts: list[str] = [whole[:at] for at in range(0, len(whole), 97)]

    def program(run: Invocation) -> int:
        run.out(cuts.pop())
        return 0

    replace_program(served, program)
    while cuts:
        with pytest.raises(HarnessError):
            way.images()
