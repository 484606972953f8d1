"""Power by IPMI: the real ipmitool, asking OpenIPMI's simulator of a controller."""

import shutil
import subprocess
import time
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass, replace
from pathlib import Path

import pytest
from support.mounted import blocked

from harness.errors import (
    BlockedError,
    ConfigurationError,
    DeadlineError,
    InfrastructureError,
    UnreachableError,
)
from harness.lab.power.access import IpmiAccess, PowerAccess
from harness.lab.power.acts import carry_out, state_of
from harness.lab.power.ipmi import Ipmi
from harness.registry.ports import free_port

PASSWORD = "canary-ipmi-4d"
LAN = """\
name "bench"
set_working_mc 0x20
  startlan 1
    addr 127.0.0.1 {port}
    priv_limit admin
    allowed_auths_callback none md2 md5 straight
    allowed_auths_user none md2 md5 straight
    allowed_auths_operator none md2 md5 straight
    allowed_auths_admin none md2 md5 straight
    guid a123456789abcdefa123456789abcdef
  endlan
  chassis_control "{folder}/chassis"
  user 1 true "" "test" user 10 none md2 md5 straight
  user 2 true "lab" "{password}" admin 10 none md2 md5 straight
"""
EMULATION = """\
mc_setbmc 0x20
mc_add 0x20 0 no-device-sdrs 0x23 9 8 0x9f 0x1291 0xf02 persist_sdr
sel_enable 0x20 1000 0x0a
mc_enable 0x20
"""
#: What the simulator has its machine's power asked of and switched by; `stuck` beside it: nothing happens.
CHASSIS = """\
#!/bin/sh
cd {folder}
case "$*" in
"get power") echo "power:$(cat power)" ;;
"set power "*) [ -e stuck ] || echo "$3" >power ;;
esac
"""


@dataclass(frozen=True)
class Simulator:
    folder: Path
    access: IpmiAccess

    @property
    def powered(self) -> bool:
        return (self.folder / "power").read_text().strip() == "1"


@pytest.fixture(scope="module")
def simulated(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Simulator]:
    for program, package in (("ipmitool", "ipmitool"), ("ipmi_sim", "openipmi")):
        if shutil.which(program) is None:
            blocked(f"there is no {program} here; as root: apt-get install {package}")
    folder = tmp_path_factory.mktemp("ipmi")
    port = free_port()
    (folder / "lan.conf").write_text(LAN.format(port=port, folder=folder, password=PASSWORD))
    (folder / "emulation").write_text(EMULATION)
    (folder / "chassis").write_text(CHASSIS.format(folder=folder))
    (folder / "chassis").chmod(0o755)
    (folder / "power").write_text("1")
    (folder / "state").mkdir()
    process = subprocess.Popen(
        ["ipmi_sim", "-n", "-c", folder / "lan.conf", "-f", folder / "emulation", "-s", folder / "state"],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        found = Simulator(folder, IpmiAccess("127.0.0.1", port, "lab", PASSWORD, cipher_suite=3))
        _wait_until_it_answers(found.access)
        yield found
    finally:
        process.terminate()
        process.wait(30)


def _wait_until_it_answers(access: IpmiAccess) -> None:
    end = time.monotonic() + 60
    while True:
        try:
            state_of(PowerAccess("bench", access, 30))
            return
        except UnreachableError:
            assert time.monotonic() < end


@pytest.fixture
def simulator(simulated: Simulator) -> Simulator:
    (simulated.folder / "power").write_text("1")
    (simulated.folder / "stuck").unlink(missing_ok=True)
    return simulated


def power(access: IpmiAccess, deadline: float = 60) -> PowerAccess:
    return PowerAccess("bench", access, deadline)


def test_power_goes_off_and_on_and_is_seen_so(simulator: Simulator) -> None:
    carry_out(power(simulator.access), "off")
    assert not simulator.powered and state_of(power(simulator.access)) == "off"
    carry_out(power(simulator.access), "cycle")
    assert simulator.powered and state_of(power(simulator.access)) == "on"


def test_a_controller_that_accepts_and_does_nothing(simulator: Simulator) -> None:
    (simulator.folder / "stuck").touch()
    with pytest.raises(
        DeadlineError, match="took the request, and what it said last is 'Chassis Power is on'"
    ):
        carry_out(power(simulator.access, 1.0), "off")


def test_a_wrong_password_is_told_after_few_tries(simulator: Simulator) -> None:
    wrong = replace(simulator.access, password="canary-no")
    with pytest.raises(
        InfrastructureError, match=r"gives 'lab' no session.*; it was tried 3 times"
    ) as failure:
        carry_out(power(wrong, 3600), "off")
    assert not isinstance(failure.value, UnreachableError)
    assert "canary" not in str(failure.value) and simulator.powered


def test_the_password_is_in_no_command_line(simulator: Simulator, tmp_path: Path) -> None:
    spy = tmp_path / "ipmitool"
    spy.write_text(f'#!/bin/sh\necho "$@" >>{tmp_path}/words\nexec ipmitool "$@"\n')
    spy.chmod(0o755)
    carry_out(power(replace(simulator.access, program=str(spy))), "off")
    words = (tmp_path / "words").read_text()
    assert "power off" in words and "-E" in words and PASSWORD not in words
    assert PASSWORD not in repr(simulator.access)


def test_what_ipmi_cannot_do() -> None:
    there = IpmiAccess("127.0.0.1", 1, "lab", "x" * 21)
    with closing(Ipmi("bench", replace(there, program="no-such-ipmitool"))) as switch:
        with pytest.raises(BlockedError, match="there is no no-such-ipmitool here") as failure:
            switch.state(10)
        assert "apt-get install ipmitool" in failure.value.hint
    if shutil.which("ipmitool"):
        with (
            closing(Ipmi("bench", there)) as switch,
            pytest.raises(ConfigurationError, match="longer than 20"),
        ):
            switch.state(10)
