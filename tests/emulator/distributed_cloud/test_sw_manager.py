"""The command `sw-manager` on a controller: output as the sample shows it, exit codes (section 5.5)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import pytest
from support.starlingx_lab import PASSWORD, Lab, MakeLab

from harness.emulator.process import Buffer, Bytes
from harness.emulator.programs.base import Streams
from harness.emulator.starlingx.controllers import install_commands
from harness.emulator.starlingx.listening import Listening

UUID = "00000000-0000-4000-8000-000000000001"
#: From the keywords of starlingx/test (swmanager_vertical_table_parser.py).
SAMPLE = """\
Strategy Firmware Update Strategy:
  strategy-uuid:                          00000000-0000-4000-8000-000000000001
  controller-apply-type:                  ignore
  storage-apply-type:                     ignore
  worker-apply-type:                      serial
  default-instance-action:                stop-start
  alarm-restrictions:                     strict
  current-phase:                          build
  current-phase-completion:               100%
  state:                                  build-failed
  build-result:                           failed
  build-reason:                           alarms ['100.104'] from platform are present
"""


@dataclass
class Shell:
    """A login on the controller."""

    lab: Lab

    def run(self, words: str, prefix: str = "source /etc/platform/openrc; ") -> tuple[int, str, str]:
        out, err = Buffer(), Buffer()
        command = f"{prefix}sw-manager {words}"
        code = self.lab.machine.run(command, Streams(Bytes(), out, err))
        return code, out.data.decode(), err.data.decode()

    def shown(self, words: str) -> str:
        code, out, err = self.run(f"fw-update-strategy {words}")
        assert (code, err) == (0, "")
        return out


@pytest.fixture
def shell(make_lab: MakeLab) -> Iterator[Shell]:
    lab = make_lab()
    listening = Listening()
    url = listening.add("system1", lambda fetch: lab.system)
    listening.serve()
    install_commands(lab.hosts, "head", url, PASSWORD)
    yield Shell(lab)
    listening.close()


def fields(shown: str) -> dict[str, str]:
    """Return what stands behind the names of the first level, whose values begin at column 42."""
    lines = [line for line in shown.splitlines()[1:] if line.startswith("  ") and line[2] != " "]
    assert all(line[41] == " " and line[42:43] != " " for line in lines if len(line) > 42)
    return {line[2:].partition(":")[0]: line[42:] for line in lines}


def test_a_build_that_failed_is_shown_as_in_the_sample(shell: Shell) -> None:
    shell.lab.apply(shell.lab.upload("unsigned"))
    shell.lab.system.alarms.set("100.104", "host=controller-0", "major", "File System threshold exceeded")
    shell.run("fw-update-strategy create")
    shell.lab.pass_time(10)
    shown = shell.shown("show")
    assert shown.replace(fields(shown)["strategy-uuid"], UUID) == SAMPLE


def test_a_strategy_from_create_to_delete(shell: Shell) -> None:
    assert shell.shown("show") == "No strategy available\n"
    shell.lab.apply(shell.lab.upload("unsigned"))
    with shell.lab.clock.actor():
        made = fields(shell.shown("create --worker-apply-type parallel --max-parallel-worker-hosts 2"))
        assert (made["current-phase"], made["state"], made["inprogress"]) == ("build", "building", "true")
        assert (made["worker-apply-type"], made["max-parallel-worker-hosts"]) == ("parallel", "2")
        shell.lab.clock.sleep(20)
        ready = fields(shell.shown("show"))
        assert (ready["state"], ready["build-result"]) == ("ready-to-apply", "success")
        applying = fields(shell.shown("apply"))
        assert (applying["current-phase"], applying["state"]) == ("apply", "applying")
        assert shell.run("fw-update-strategy apply") == (1, "Strategy already applied.\n", "")
        shell.lab.clock.sleep(30)
        active = shell.shown("show --active")
        assert "            step-name:                    fw-update-hosts\n" in active
        assert "            entity-names:                 ['controller-0']\n" in active
        assert "query-alarms" not in active
        assert shell.run("fw-update-strategy delete") == (1, "Operation failed: conflict detected\n", "")
        shell.lab.clock.sleep(1500)
    done = fields(shell.shown("show"))
    assert (done["state"], done["apply-result"], done["apply-reason"]) == ("applied", "success", "")
    details = shell.shown("show --details")
    assert [line.split()[1] for line in details.splitlines() if "step-name:" in line][2:] == [
        "query-alarms",
        "fw-update-hosts",
        "lock-hosts",
        "system-stabilize",
        "unlock-hosts",
        "system-stabilize",
    ]
    assert shell.shown("delete") == "Strategy deleted\n"
    assert shell.run("fw-update-strategy delete") == (1, "Nothing to delete\n", "")


def test_an_aborted_strategy_shows_both_phases(shell: Shell) -> None:
    shell.lab.apply(shell.lab.upload("unsigned"))
    with shell.lab.clock.actor():
        shell.shown("create")
        shell.lab.clock.sleep(20)
        assert shell.run("fw-update-strategy abort") == (
            1,
            "Operation failed: apply not inprogress\nStrategy abort failed\n",
            "",
        )
        shell.shown("apply")
        shell.lab.clock.sleep(30)
        assert fields(shell.shown("abort"))["state"] == "aborting"
    shell.lab.pass_time(1500)
    ended = fields(shell.shown("show"))
    # Sysinv refuses to abort what has ended meanwhile (section 2.5), and so the abort fails.
    assert (ended["state"], ended["apply-result"], ended["abort-result"]) == (
        "abort-failed",
        "aborted",
        "failed",
    )
    assert ended["abort-reason"] == "device image update abort failed"


def test_what_cannot_be_applied_is_told(shell: Shell) -> None:
    assert shell.run("fw-update-strategy apply") == (1, "No strategy available. Nothing to apply.\n", "")
    shell.shown("create")
    shell.lab.pass_time(10)
    assert shell.run("fw-update-strategy apply") == (
        1,
        "Strategy cannot be applied. build-failed is not a valid state.\n",
        "",
    )
    assert shell.run("fw-update-strategy create") == (1, "Operation failed: conflict detected\n", "")


def test_wrong_words_end_with_2(shell: Shell) -> None:
    code, out, err = shell.run("fw-update-strategy create --max-parallel-worker-hosts 6")
    assert (code, out) == (2, "")
    assert "invalid choice: 6 (choose from 2, 3, 4, 5)" in err
    assert shell.run("")[0] == 2
    code, out, _ = shell.run("--help")
    assert (code, out.splitlines()[0][:17]) == (0, "usage: sw-manager")


def test_without_openrc_it_says_what_is_missing_and_exits_0(shell: Shell) -> None:
    assert shell.run("fw-update-strategy show", prefix="") == (0, "Authentication URI not given\n", "")
