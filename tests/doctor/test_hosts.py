"""A host behind a real OpenSSH server, with cards of files: each trouble on the way is told with its fix."""

from __future__ import annotations

import shutil
import textwrap
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from support.cards import add_card
from support.openssh import OpenSsh

from harness.doctor.examination import examine
from harness.doctor.model import Diagnosis, Part
from harness.health.checks import Check, Grade, ok
from harness.inventory.load import load_inventory
from harness.lab.leasing import leases_of
from harness.lab.running import RunningLab

MAC, OTHER = "64:4c:36:00:12:a0", "64:4c:36:00:12:b0"
TOOLS = ("fpgasupdate", "rsu", "fpgainfo")


@dataclass
class Site:
    """A server, and a folder with two cards and the tools."""

    server: OpenSsh
    folder: Path

    def look(self, *devices: str, in_use: dict[str, str] | None = None, **ssh: Any) -> Diagnosis:
        """Return what is found of the host, whose `ssh` entry has ``ssh`` besides."""
        known = {
            "address": "127.0.0.1",
            "port": self.server.port,
            "user": self.server.user,
            "known_hosts": self.server.known_hosts,
            "credentials": f"{{key_file: {self.server.key_file}}}",
        } | ssh
        way = ", ".join(f"{key}: {value}" for key, value in known.items())
        text = f"""\
            version: 1
            default_lab: bench
            labs:
              bench:
                hosts:
                  one:
                    ssh: {{{way}}}
                    sysfs: {self.folder}/sys
                    upload_dir: {self.folder}
                    tools: {{{", ".join(f"{name}: {self.folder}/{name}" for name in TOOLS)}}}
                    cards:
                      card0: {{address: '0000:b2:00.0', identity: '{MAC}'}}
                      card1: {{address: '0000:b4:00.0', identity: '{OTHER}'}}
            """
        file = self.folder / "inventory.yaml"
        file.write_text(textwrap.dedent(text))
        entry = load_inventory(file).lab()
        with RunningLab(entry, leases=leases_of("x", said=f"sqlite:///{self.folder}/l.sqlite")) as lab:
            return examine(
                lab, lambda: Part("machine", "m", (ok("a", "b"),)), devices=devices, in_use=in_use or {}
            )


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[OpenSsh]:
    started = OpenSsh(tmp_path_factory.mktemp("sshd"))
    started.start()
    yield started
    started.stop()


@pytest.fixture
def site(tmp_path: Path, server: OpenSsh) -> Site:
    return made_site(tmp_path, server)


def made_site(tmp_path: Path, server: OpenSsh) -> Site:
    for name in TOOLS:
        (tmp_path / name).write_text("#!/bin/sh\necho 'fpgasupdate 2.14.0'\n")
        (tmp_path / name).chmod(0o755)
    for address, mac in (("0000:b2:00.0", MAC), ("0000:b4:00.0", OTHER)):
        add_card(tmp_path / "sys", address, mac).write("sec/control/image_load", "")
    return Site(server, tmp_path)


def part(diagnosis: Diagnosis, name: str) -> Part:
    return next(one for one in diagnosis.parts if one.name == name)


def troubles(found: Part) -> dict[str, Check]:
    return {c.name: c for c in found.checks if c.grade is not Grade.OK and c.name != "account"}


def test_a_host_and_its_cards_that_are_well(site: Site) -> None:
    found = site.look()
    assert [(one.kind, one.name) for one in found.parts] == [
        ("machine", "m"),
        ("host", "one"),
        ("card", "one/card0"),
        ("card", "one/card1"),
    ]
    assert [troubles(one) for one in found.parts] == [{}] * 4
    assert "SSH to " in part(found, "one").checks[0].finding


def test_only_chosen_cards_are_looked_at_and_none_that_is_in_use(site: Site) -> None:
    found = site.look("one/card1", in_use={"one/card1": "ada has it"})
    assert [one.name for one in found.parts] == ["m", "one", "one/card1"]
    (check,) = part(found, "one/card1").checks
    assert (check.grade, "ada has it" in check.finding) == (Grade.OK, True)
    assert part(found, "one/card1").lease == "ada has it"


@pytest.mark.parametrize(
    ("ssh", "check", "finding", "fix"),
    [
        ({"known_hosts": "{folder}/none"}, "login", "is not in", "hil host trust one"),
        ({"credentials": "{{key_file: {folder}/other}}"}, "login", "refused the login", "credentials"),
        ({"credentials": "{{env: HIL_NO_SUCH_PASSWORD}}"}, "login", "holds no password", "export"),
        ({"port": 1}, "reachable", "cannot be reached", "address and port"),
    ],
    ids=["unknown host key", "wrong key", "no password", "nobody there"],
)
def test_a_way_in_that_is_closed(site: Site, ssh: dict[str, Any], check: str, finding: str, fix: str) -> None:
    (site.folder / "none").touch()
    other = OpenSsh(site.folder / "another")
    (site.folder / "other").write_bytes(other.key_file.read_bytes())
    (site.folder / "other").chmod(0o600)
    told = {key: v.format(folder=site.folder) if isinstance(v, str) else v for key, v in ssh.items()}
    found = site.look(**told)
    trouble = troubles(part(found, "one"))[check]
    assert (trouble.grade, finding in trouble.finding, fix in trouble.hint) == (Grade.BAD, True, True), (
        trouble
    )
    for card in ("one/card0", "one/card1"):
        unknown = troubles(part(found, card))[check]
        assert unknown.finding.startswith("its host is not to be asked")
        assert unknown.hint == trouble.hint


def test_troubles_of_a_card_are_its_own(site: Site) -> None:
    mac = next(site.folder.glob("sys/**/0000:b2:00.0/**/mac_address"))
    mac.write_text("64:4c:36:00:12:c0\n")
    found = site.look()
    assert "another card" in troubles(part(found, "one/card0"))["card"].finding
    assert troubles(part(found, "one/card1")) == {}
    assert found.grade is Grade.BAD


#: What the harness runs on a host of cards, besides the vendor's tools.
PROGRAMS = (
    *(
        "cat",
        "date",
        "df",
        "dmesg",
        "flock",
        "grep",
        "id",
        "ls",
        "pgrep",
        "readlink",
        "sh",
        "sha256sum",
        "stat",
    ),
    *("which", "true", "rm"),
)


@pytest.fixture
def bare_site(tmp_path: Path) -> Iterator[Site]:
    """A host on which sessions find nothing but links to PROGRAMS, which a test may take away."""
    there = tmp_path / "bin"
    there.mkdir()
    for name in PROGRAMS:
        (there / name).symlink_to(shutil.which(name) or pytest.fail(f"{name} is not on this machine"))
    started = OpenSsh(tmp_path / "sshd", path=str(there))
    started.start()
    yield made_site(tmp_path, started)
    started.stop()


@pytest.mark.parametrize(
    ("program", "check", "grade", "without", "package"),
    [
        ("fpgainfo", "tools", Grade.WARN, "what it reports of a card cannot be asked", "OPAE"),
        ("fpgasupdate", "tools", Grade.BAD, "no image can be flashed", "OPAE"),
        ("rsu", "tools", Grade.BAD, "no card can be reset", "OPAE"),
        ("flock", "programs", Grade.BAD, "no card can be held", "util-linux"),
        ("sha256sum", "programs", Grade.BAD, "an image there cannot be verified", "coreutils"),
        ("pgrep", "programs", Grade.WARN, "a process that works on a card is not seen", "procps"),
        ("dmesg", "programs", Grade.WARN, "what the kernel logs of an update cannot be read", "util-linux"),
        ("grep", "programs", Grade.BAD, "nothing of a card can be read", "grep"),
        ("which", "programs", Grade.BAD, "no other program can be looked for", "debianutils"),
    ],
)
def test_a_program_that_is_missing_is_named_with_its_host_its_use_and_its_package(
    bare_site: Site, program: str, check: str, grade: Grade, without: str, package: str
) -> None:
    assert troubles(part(bare_site.look(), "one")) == {}
    tool = program in TOOLS
    (bare_site.folder / program if tool else bare_site.folder / "bin" / program).unlink()
    found = troubles(part(bare_site.look(), "one"))
    assert list(found) == [check]
    assert f"{program}{'' if tool else ' '}" in found[check].finding.replace("`", "")
    assert "is missing on one: " in found[check].finding
    assert (found[check].grade, without in found[check].finding) == (grade, True), found
    assert package in found[check].hint
    assert "on one" in found[check].hint


def test_a_card_that_cannot_be_read_without_grep_says_so(bare_site: Site) -> None:
    (bare_site.folder / "bin" / "grep").unlink()
    unread = troubles(part(bare_site.look(), "one/card0"))["card"]
    assert "grep" in unread.finding
    assert "install it on one" in unread.hint


def test_nobody_says_that_no_updater_runs_where_processes_cannot_be_listed(bare_site: Site) -> None:
    """Generation C shows no status: whether an update runs is told by processes alone."""
    shutil.rmtree(bare_site.folder / "sys")
    add_card(bare_site.folder / "sys", "0000:b2:00.0", MAC, "C")
    assert "idle" not in troubles(part(bare_site.look(), "one/card0"))
    (bare_site.folder / "bin" / "pgrep").unlink()
    doubt = troubles(part(bare_site.look(), "one/card0"))["idle"]
    assert (doubt.grade, "processes cannot be listed" in doubt.finding) == (Grade.WARN, True), doubt
    assert "procps" in doubt.hint
