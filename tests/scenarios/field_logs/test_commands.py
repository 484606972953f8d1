"""Command lines in prose, with every prompt; and prose that only names a command."""

import pytest

from harness.scenarios.field_logs.acts import act_of
from harness.scenarios.field_logs.commands import CommandReader, command_in
from harness.scenarios.field_logs.events import CENTRAL, Command, Context, Place
from harness.scenarios.field_logs.lines import Line


def commands(*lines: str) -> list[Command]:
    reader, context = CommandReader(), Context()
    found = [e for n, text in enumerate(lines, 1) for e in reader.take(Line("f", n, text), context)]
    found += reader.end(context)
    return [each for each in found if isinstance(each, Command)]


@pytest.mark.parametrize(
    "line",
    [
        "system host-lock compute-0",
        "  $ system host-lock compute-0",
        "# system host-lock compute-0",
        "[sysadmin@controller-0 ~(keystone_admin)]$ system host-lock compute-0",
        "sysadmin@controller-0:~$ sudo system host-lock compute-0",
        "12. system host-lock compute-0",
        "- system host-lock compute-0",
        "controller-0:~$ system host-lock compute-0",
    ],
)
def test_a_command_is_known_whatever_stands_before_it(line: str) -> None:
    (found,) = commands(line)
    assert (found.words, found.system) == (("system", "host-lock", "compute-0"), "")


@pytest.mark.parametrize(
    "line",
    [
        "On the system controller, there are 2 images applied:",
        "the system host did not come up",
        "dcmanager shows out-of-sync",
        "rsu removed the root port",
        "We ran fpgasupdate",
        "the docker push failed",
        "system --os-region-name",
    ],
)
def test_prose_about_commands_is_none(line: str) -> None:
    assert command_in(line) is None


def test_where_a_command_was_given() -> None:
    assert [each.system for each in commands("subcloud7: system host-lock compute-0")] == ["subcloud7"]
    region = "system --os-region-name SystemController device-image-apply x"
    assert [each.system for each in commands(region, "dcmanager subcloud list")] == [CENTRAL, CENTRAL]


def test_a_command_that_goes_on_is_one() -> None:
    (found,) = commands(
        "$ system device-image-upload a.bin functional \\", "   8086 0b30 \\", "  --bitstream-id 11"
    )
    assert found.words[-4:] == ("8086", "0b30", "--bitstream-id", "11")
    assert found.place == Place("f", 1)


def test_passwords_of_a_command_are_masked() -> None:
    (found,) = commands("system --os-password hunter2secret host-lock compute-0")
    assert "hunter2secret" not in found.text + " ".join(found.words)


def test_a_quote_that_nothing_closes_is_no_error() -> None:
    (found,) = commands("system host-lock compute-0 'x")
    assert found.words == ("system", "host-lock", "compute-0", "'x")


@pytest.mark.parametrize(
    ("line", "kind", "words", "options"),
    [
        (
            "system device-image-upload a.bin functional 8086 0b30 -b 11 --bmc --name=x",
            "upload", ("a.bin", "functional", "8086", "0b30"), {"bitstream-id": "11", "bmc": "", "name": "x"},
        ),
        ("system device-image-apply U a=b", "apply", ("U", "a=b"), {}),
        ("system host-device-label-assign --overwrite h d k=v", "label", ("h", "d", "k=v"),
         {"overwrite": ""}),
        (
            "dcmanager fw-update-strategy create --subcloud-apply-type serial --stop-on-failure",
            "create-strategy", (), {"subcloud-apply-type": "serial", "stop-on-failure": ""},
        ),
        ("fpgasupdate -y --log-level debug a.bin b2:00.0", "flash", ("a.bin", "b2:00.0"),
         {"y": "", "log-level": "debug"}),
        ("docker push registry.local:9001/a/b:v1", "push", ("registry.local:9001/a/b:v1",), {}),
        ("skopeo copy docker-archive:x docker://r/a:v1", "push", ("r/a:v1",), {"client": "skopeo"}),
    ],
)  # fmt: skip
def test_what_a_command_asks_for(
    line: str, kind: str, words: tuple[str, ...], options: dict[str, str]
) -> None:
    act = act_of(commands(line)[0])
    assert act is not None
    assert (act.kind, act.words, act.options) == (kind, words, options)


def test_a_command_that_changes_nothing_is_no_act() -> None:
    assert act_of(commands("system device-image-list")[0]) is None
