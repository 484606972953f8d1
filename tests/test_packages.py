"""Programs of the distribution: found, installed, unpacked; with stand-ins for apt, dpkg and sudo."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from support.mounted import blocked

from harness import packages
from harness.errors import BlockedError

#: Fetches a package that holds one program; fails as apt does where the test says so.
APT_GET = """\
#!/bin/sh
echo "apt-get $*" >>"$CALLS"
if [ -e "$CALLS.offline" ]; then echo "E: Unable to locate package thing" >&2; exit 100; fi
case "$*" in
*" download "*) echo deb >thing_1_amd64.deb ;;
*/dev/null*) cat "$CALLS.simulated" ;;
*" --simulate "*)
  if [ -e "$CALLS.conflicts" ]; then echo "E: Unable to correct problems" >&2; exit 100; fi
  if [ -e "$CALLS.simulated" ]; then cat "$CALLS.simulated"; fi ;;
*" install "*) printf '#!/bin/sh\\n' >"$BIN/thing"; chmod +x "$BIN/thing" ;;
esac
"""
FAILING_APT_GET = APT_GET.replace('*" install "*)', '*" install "*) exit 1;')
DPKG = """\
#!/bin/sh
echo "dpkg $*" >>"$CALLS"
mkdir -p "$3/usr/sbin"; printf '#!/bin/sh\\n' >"$3/usr/sbin/thing"; chmod +x "$3/usr/sbin/thing"
"""
SUDO = """\
#!/bin/sh
echo "sudo $*" >>"$CALLS"
[ ! -e "$CALLS.asks" ] || exit 1
shift
exec "$@"
"""
SYSTEMCTL = '#!/bin/sh\necho "systemctl $*" >>"$CALLS"\n'
TOOLS = ("sh", "env", "mkdir", "chmod", "true", "cat")


class Machine:
    """A machine whose PATH holds only stand-ins, and a list of what they were asked."""

    def __init__(self, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.bin = folder / "bin"
        self.bin.mkdir()
        self.folder = folder / "tools"
        self.said: list[str] = []
        self._calls = folder / "calls"
        self._patch = monkeypatch
        for tool in TOOLS:
            (self.bin / tool).symlink_to(str(shutil.which(tool)))
        for name, text in (("apt-get", APT_GET), ("dpkg", DPKG), ("sudo", SUDO), ("systemctl", SYSTEMCTL)):
            self.program(name, text)
        monkeypatch.setenv("PATH", str(self.bin))
        monkeypatch.setenv("CALLS", str(self._calls))
        monkeypatch.setenv("BIN", str(self.bin))
        monkeypatch.setattr(packages, "_SYSTEM_FOLDERS", str(self.bin))
        self.user(1000)
        self.systemd(False)

    def program(self, name: str, text: str) -> None:
        (self.bin / name).write_text(text)
        (self.bin / name).chmod(0o755)

    def user(self, uid: int) -> None:
        self._patch.setattr(os, "geteuid", lambda: uid)

    def systemd(self, runs: bool) -> None:
        self._patch.setattr(packages, "_SYSTEMD", self.bin if runs else self.bin / "none")

    def state(self, word: str) -> None:
        Path(f"{self._calls}.{word}").touch()

    def simulates(self, said: str) -> None:
        Path(f"{self._calls}.simulated").write_text(said)

    def calls(self) -> list[str]:
        return self._calls.read_text().splitlines() if self._calls.exists() else []

    def provide(self, **options: bool) -> Path:
        return packages.provide("thing", "thing", folder=self.folder, say=self.said.append, **options)


@pytest.fixture
def machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Machine:
    return Machine(tmp_path, monkeypatch)


def test_what_is_in_path_is_taken_as_it_is(machine: Machine) -> None:
    machine.program("thing", "#!/bin/sh\n")
    assert machine.provide() == machine.bin / "thing"
    assert (machine.calls(), machine.said) == ([], [])


def test_root_installs_it_and_says_so(machine: Machine) -> None:
    machine.user(0)
    assert machine.provide() == machine.bin / "thing"
    assert machine.said == ["Installing thing with apt-get as root."]
    assert machine.calls() == [
        "apt-get -o DPkg::Lock::Timeout=120 update",
        "apt-get -o DPkg::Lock::Timeout=120 install -y --no-install-recommends thing",
    ]


def test_a_service_of_the_package_is_not_started(machine: Machine) -> None:
    machine.user(0)
    machine.systemd(True)
    machine.provide()
    calls = [call for call in machine.calls() if "update" not in call]
    assert [call.split(" ")[0:2] for call in calls] == [
        ["systemctl", "mask"],
        ["apt-get", "-o"],
        ["systemctl", "unmask"],
        ["systemctl", "disable"],
    ]


def test_the_mask_goes_when_the_installation_fails(machine: Machine) -> None:
    machine.user(0)
    machine.systemd(True)
    machine.program("apt-get", FAILING_APT_GET)
    machine.provide()
    assert "systemctl unmask thing.service" in machine.calls()


def test_sudo_without_a_password_serves_as_root(machine: Machine) -> None:
    assert machine.provide() == machine.bin / "thing"
    assert machine.said == ["Installing thing with apt-get through sudo."]
    assert any("-n env DEBIAN_FRONTEND=noninteractive" in call for call in machine.calls())


@pytest.mark.parametrize("why", ["sudo asks", "no sudo", "not wanted"])
def test_without_root_it_is_unpacked_and_nothing_is_installed(machine: Machine, why: str) -> None:
    if why == "sudo asks":
        machine.state("asks")
    elif why == "no sudo":
        (machine.bin / "sudo").unlink()
    found = machine.provide(install=why != "not wanted")
    assert found == machine.folder / "root/usr/sbin/thing"
    assert machine.said == [f"Unpacking thing into {machine.folder}; nothing is installed."]
    assert not any("install" in call for call in machine.calls() if "--simulate" not in call)
    # Lists and cache are in a folder of ours, which is gone.
    assert all(
        f"Dir::State::Lists={machine.folder}/" in call for call in machine.calls() if "apt-get" in call
    )
    assert sorted(path.name for path in machine.folder.iterdir()) == ["lock", "root"]


def test_what_was_unpacked_once_is_not_fetched_again(machine: Machine) -> None:
    first = machine.provide(install=False)
    before = machine.calls()
    assert machine.provide(install=False) == first
    assert machine.calls() == before


def test_an_installation_that_fails_gives_way_to_unpacking(machine: Machine) -> None:
    machine.user(0)
    machine.program("apt-get", FAILING_APT_GET)
    assert machine.provide() == machine.folder / "root/usr/sbin/thing"


@pytest.mark.parametrize("uid", [0, 1000])
def test_what_cannot_be_had_is_blocked_with_the_command_that_helps(machine: Machine, uid: int) -> None:
    machine.user(uid)
    machine.state("offline")
    with pytest.raises(BlockedError, match="E: Unable to locate package thing") as caught:
        machine.provide()
    assert caught.value.hint == "Install it:  sudo apt-get install thing"
    assert not (machine.folder / "root").exists()


def test_a_machine_without_apt_is_blocked(machine: Machine) -> None:
    (machine.bin / "apt-get").unlink()
    machine.user(0)
    with pytest.raises(BlockedError, match=r"The program thing is missing.*apt-get"):
        machine.provide()


def test_a_folder_that_cannot_be_written_is_blocked(machine: Machine) -> None:
    machine.folder.write_text("in the way")
    with pytest.raises(BlockedError, match=str(machine.folder)):
        machine.provide(install=False)


#: As `apt-get --simulate install` says it on Debian 13, where libc6 is here in another version.
SIMULATED = """\
NOTE: This is only a simulation!
The following NEW packages will be installed:
  libglib2.0-0t64 libwrap0 thing
Inst libc6 [2.41-12] (2.41-12+deb13u1 Debian:13.4/stable [amd64])
Inst libglib2.0-0t64 (2.84.4-3~deb13u1 Debian:13.4/stable [amd64])
Inst libwrap0 (7.6.q-36 Debian:13.4/stable [amd64]) []
Inst thing (1:10.0p1-7 Debian:13.4/stable [amd64])
Conf libc6 (2.41-12+deb13u1 Debian:13.4/stable [amd64])
Conf libglib2.0-0t64 (2.84.4-3~deb13u1 Debian:13.4/stable [amd64])
"""
#: As dpkg-query says it: ii is installed, rc is removed with its settings left.
STATUS = "ii  libc6\nrc  libwrap0\n"


def test_what_apt_says_is_missing_is_unpacked_with_it(machine: Machine) -> None:
    machine.simulates(SIMULATED)
    machine.provide(install=False)
    (download,) = [call for call in machine.calls() if " download " in call]
    assert download.endswith(" download thing libglib2.0-0t64 libwrap0")


def test_what_may_not_be_installed_here_is_unpacked_with_what_a_bare_machine_would_need(
    machine: Machine,
) -> None:
    machine.simulates(SIMULATED.replace("Inst libc6 [2.41-12]", "Inst libc6"))
    machine.state("conflicts")
    machine.program("dpkg-query", f"#!/bin/sh\nprintf '{STATUS}'\n")
    machine.provide(install=False)
    (download,) = [call for call in machine.calls() if " download " in call]
    assert download.endswith(" download thing libglib2.0-0t64 libwrap0")


@pytest.fixture(scope="module")
def archive(tmp_path_factory: pytest.TempPathFactory) -> packages.Archive:
    """The real apt, with lists of its own."""
    try:
        found = packages.Archive(tmp_path_factory.mktemp("archive"))
        found.missing(["libc6"])
    except packages.PackageError as error:
        blocked(f"These tests ask the apt of Debian or Ubuntu, with its archive in reach: {error}")
    return found


def test_the_real_apt_names_what_is_missing_and_nothing_that_is_here(archive: packages.Archive) -> None:
    command = ["dpkg-query", "--show", "--showformat=${db:Status-Abbrev} ${Package}\\n"]
    listed = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    here = {line.split()[1] for line in listed.splitlines() if line.startswith("ii")}
    assert archive.missing(["libc6"]) == []
    assert here.isdisjoint(archive.missing(["openssh-server", "skopeo", "umockdev"]))
    with pytest.raises(packages.PackageError, match="E: Unable to locate package no-such-package"):
        archive.missing(["no-such-package"])


def test_the_real_apt_names_all_that_a_bare_machine_would_need(archive: packages.Archive) -> None:
    said = archive._simulate(["openssh-server"], "-o", "Dir::State::status=/dev/null")
    assert {"libc6", "openssh-client", "openssh-server", "openssh-sftp-server"} <= set(packages._added(said))


def test_libraries_are_found_in_both_places_where_packages_bring_them(tmp_path: Path) -> None:
    for name in ("usr/lib/x86_64-linux-gnu/libgpgme.so.11", "lib/x86_64-linux-gnu/libdevmapper.so.1.02.1"):
        (tmp_path / name).parent.mkdir(parents=True)
        (tmp_path / name).touch()
    for name in ("usr/lib/os-release", "usr/lib/x86_64-linux-gnu/security/pam_unix.so"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).touch()
    assert packages.library_path(tmp_path) == {
        "LD_LIBRARY_PATH": f"{tmp_path}/lib/x86_64-linux-gnu:{tmp_path}/usr/lib/x86_64-linux-gnu"
    }


def test_many_processes_unpack_it_once(machine: Machine) -> None:
    code = (
        "import sys; from pathlib import Path; from harness.packages import unpacked; "
        f"print(unpacked(['thing'], Path({str(machine.folder)!r})))"
    )
    running = [
        subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True, env=os.environ)
        for _ in range(4)
    ]
    found = {process.communicate(timeout=60)[0].strip() for process in running}
    assert found == {str(machine.folder / "root")}
    assert sum("download" in call for call in machine.calls()) == 1
