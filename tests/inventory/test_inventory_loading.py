"""What an inventory file may hold, and how an error in one points at its place."""

from collections.abc import Mapping
from pathlib import Path

import pytest
from support.inventories import GOOD, rejected

from harness.errors import ConfigurationError
from harness.inventory.load import check_profiles, load_inventory


def test_good_inventory_is_read_with_defaults_and_normal_forms(write, tmp_path: Path) -> None:
    lab = load_inventory(write(GOOD)).lab()
    host, left = lab.card("twin/left")
    assert (left.name, left.address, left.identity) == ("left", "0000:1b:00.0", "64:4c:36:00:00:01")
    assert left.irreversible == ("root-key",)
    assert host.card("right").irreversible == ()
    assert not host.real
    assert host.can_power
    rack7 = lab.host("rack7")
    assert rack7.real
    assert rack7.ssh is not None
    assert rack7.ssh.port == 22
    assert rack7.ssh.credentials.key_file == tmp_path / "keys/lab"
    assert rack7.power is not None and rack7.power.command is not None
    assert rack7.power.command.off == ("ipmitool", "-E", "power", "off")
    assert rack7.power.command.on == ("ipmitool", "-E", "power", "on")
    assert not lab.emulated


def test_power_is_a_capability_that_an_entry_may_lack(write) -> None:
    text = GOOD.replace("        power: {command", "        # power: {command").replace(
        "emulated:\n", "emulated: {power: false}\n"
    )
    lab = load_inventory(write(text)).lab()
    assert [host.can_power for host in lab.hosts.values()] == [False, False]


def test_an_emulated_host_has_a_driver_generation_and_a_tool_era(write) -> None:
    """What is current is the default: the in-tree driver, the tools on the host."""
    twin = load_inventory(write(GOOD)).lab().host("twin").emulated
    assert twin is not None
    assert (twin.generation, twin.era) == ("D", "host")
    text = GOOD.replace("emulated:\n", "emulated: {generation: A, era: docker}\n")
    twin = load_inventory(write(text)).lab().host("twin").emulated
    assert twin is not None
    assert (twin.generation, twin.era) == ("A", "docker")


def test_nothing_changes_once_loaded(write) -> None:
    inventory = load_inventory(write(GOOD))
    with pytest.raises(ValueError, match="frozen"):
        inventory.lab().host("twin").card("left").address = "0000:00:00.0"


@pytest.mark.parametrize(
    ("old", "new", "line", "key", "said"),
    [
        ("sysadmin, cred", "sysadmin, prot: 22, cred", 12, "ssh.prot", "did you mean 'port'?"),
        ("        power:", "        pwer:", 13, "hosts.rack7.pwer", "did you mean 'power'?"),
        (
            "        power:",
            "        zzz:",
            13,
            "hosts.rack7.zzz",
            "allowed: cards, emulated, labgrid, local, power",
        ),
        ("[root-key]", "[root-keys]", 9, "left.irreversible.0", "did you mean 'root-key'?"),
        ("[root-key]", "[all]", 9, "left.irreversible.0", "allowed: root-key, key-cancellation"),
        ("0000:5e:00.0", "5e:00", 10, "right.address", "has the form 0000:b2:00.0"),
        ("64:4c:36:00:00:02", "64:4c", 10, "right.identity", "has the form 64:4c:36:12:34:56"),
        ("0000:5e:00.0", "0000:1b:00.0", 10, "right.address", "left and right both stand at 0000:1b:00.0"),
        ("00:00:02", "00:00:01", 10, "right.identity", "twin/left and twin/right have the same identity"),
        (", identity: 64:4c:36:00:00:02", "", 10, "cards.right", "needs an identity"),
        ("user: sysadmin, ", "", 12, "rack7.ssh.user", "is missing"),
        ("user: sysadmin", "user:", 12, "rack7.ssh.user", "has no value"),
        ("address: 10.0.0.7", "address: 10.0.0.7, port: 0", 12, "ssh.port", "greater than or equal to 1"),
        ("        ssh:", "        local: true\n        ssh:", 11, "hosts.rack7", "it has ssh and local"),
        ("        ssh:", "        emulated:\n        ssh:", 11, "hosts.rack7", "it has emulated and ssh"),
        ("      rack7:\n", "      rack7:\n        system: sc\n", 12, "rack7.system", "no controller 'sc'"),
        (
            "        emulated:\n",
            "        emulated: {era: dockr}\n",
            7,
            "twin.emulated.era",
            "did you mean 'docker'? allowed: host, docker, containerd",
        ),
        (
            "        emulated:\n",
            "        emulated: {generation: E}\n",
            7,
            "twin.emulated.generation",
            "'E' is not allowed; allowed: A, B, C, D",
        ),
        ("default_lab: bench", "default_lab: bnch", 2, "default_lab", "Did you mean 'bench'?"),
        ("version: 1", "version: 3", 1, "version", "allowed: 1"),
        ("version: 1", "version: '1'", 1, "version", "'1' is not allowed; write 1, as a plain number"),
        ("version: 1", "version: true", 1, "version", "True is not allowed; write 1"),
        ("address: 10.0.0.7", "address: 10.0.0.7, port: true", 12, "ssh.port", "valid integer (it is True)"),
        ("address: 10.0.0.7", "address: 10.0.0.7, port: '22'", 12, "ssh.port", "valid integer (it is '22')"),
        (
            "        ssh:",
            "        local: 'no'\n        ssh:",
            12,
            "rack7.local",
            "valid boolean (it is 'no')",
        ),
        ("[root-key]", "root-key", 9, "left.irreversible", "should be a list (it is 'root-key')"),
        ("64:4c:36:00:00:02", "00:00:00:00:00:00", 10, "right.identity", "no card's own MAC address"),
        ("64:4c:36:00:00:02", "ff:ff:ff:ff:ff:ff", 10, "right.identity", "no card's own MAC address"),
        ("64:4c:36:00:00:02", "01:00:5e:00:00:01", 10, "right.identity", "no card's own MAC address"),
        (
            "address: 10.0.0.7",
            "address: -oProxyCommand=x",
            12,
            "ssh.address",
            "not the name or the IP address",
        ),
        ("address: 10.0.0.7", 'address: "a\\eb"', 12, "ssh.address", "a character that cannot be printed"),
        ("user: sysadmin", "user: -x", 12, "ssh.user", "not the name of a user"),
        (
            "        power:",
            "        sysfs: /s*s\n        power:",
            13,
            "rack7.sysfs",
            "not a plain absolute path",
        ),
        (
            "        power:",
            "        sysfs: /sys;x\n        power:",
            13,
            "rack7.sysfs",
            "not a plain absolute",
        ),
        ("        power:", "        sysfs: /a/../b\n        power:", 13, "rack7.sysfs", "and no '..'"),
        ("        power:", "        upload_dir: tmp\n        power:", 13, "rack7.upload_dir", "not a plain"),
        (
            "        power:",
            "        upload_dir: /dev/shm\n        power:",
            13,
            "upload_dir",
            "never read back",
        ),
        (
            "        power:",
            "        upload_dir: /t$(x)\n        power:",
            13,
            "rack7.upload_dir",
            "not a plain",
        ),
        (
            "        power:",
            "        tools: {rsu: rsu -f}\n        power:",
            13,
            "tools.rsu",
            "options are not",
        ),
        (
            "        power:",
            "        tools: {rsu: -x}\n        power:",
            13,
            "tools.rsu",
            "neither the name nor",
        ),
        ("emulated:\n", "emulated: {hostname: 'a;b'}\n", 7, "emulated.hostname", "is not a name"),
        ("ipmitool -E power off", "'ipmitool \"x'", 13, "command.off", "not a command line: no closing"),
        ("keys/lab}", "~nobody-of-that-name/x}", 12, "credentials.key_file", "no such home directory"),
        (
            "emulated:\n",
            "emulated:\n        power: {command: {off: a, on: b}}\n",
            6,
            "hosts.twin",
            "its own power",
        ),
        ("      twin:", "      tw in:", 6, "hosts.tw in", "is not a name"),
        ("{key_file: keys/lab}", "{env: A, agent: true}", 12, "ssh.credentials", "it has env and agent"),
        ("{key_file: keys/lab}", "{}", 12, "ssh.credentials", "give exactly one of env"),
        (
            "cards:\n          card0",
            "cards:\n          card0: 3\n          card0",
            16,
            "card0",
            "found duplicate key",
        ),
        ("b2:00.0}", "b2:00.0, emulated: {}}", 15, "card0.emulated", "its host is real"),
    ],
)
def test_error_names_file_line_key_and_what_is_allowed(
    write, old: str, new: str, line: int, key: str, said: str
) -> None:
    assert GOOD.count(old) == 1
    path = write(GOOD.replace(old, new))
    message = rejected(path)
    assert f"{path}:{line}:" in message
    assert key in message
    assert said in message


def test_all_errors_are_listed_in_the_order_of_the_file(write) -> None:
    text = GOOD.replace("sysadmin", "[]").replace("[root-key]", "root").replace("default_lab", "defalt_lab")
    lines = [row.split(":")[1] for row in rejected(write(text)).splitlines()]
    assert lines == sorted(lines, key=int)
    assert set(lines) >= {"2", "9", "12"}


LITERAL = "a literal secret may not stand in the inventory. Say where"


@pytest.mark.parametrize(
    ("old", "new", "line", "said"),
    [
        ("user: sysadmin,", "user: sysadmin, password: hunter2,", 12, LITERAL),
        ("user: sysadmin,", "user: sysadmin, Passphrase: hunter2,", 12, LITERAL),
        ("user: sysadmin,", "user: sysadmin, user: hunter2,", 12, "duplicate key"),
        ("{key_file: keys/lab}", "hunter2", 12, LITERAL),
        ("{key_file: keys/lab}", "{file: {password: hunter2}}", 12, LITERAL),
        ("{key_file: keys/lab}", "{env: hunter2!}", 12, "never the secret itself"),
        ("{key_file: keys/lab}", "{agent: hunter2}", 12, "valid boolean"),
        ("{key_file: keys/lab}", "{file: {x: hunter2}}", 12, "not a valid path"),
        ("user: sysadmin,", "user: 'sysadmin:hunter2',", 12, "a password never stands here"),
        ("address: 10.0.0.7", "address: 'sysadmin:hunter2@10.0.0.7'", 12, "have keys of their own"),
        ("ipmitool -E power off", "sh -c 'ipmitool -P hunter2 power off'", 13, "from the environment"),
        ("ipmitool -E power off", "curl -u admin:hunter2 http://pdu", 13, "from the environment"),
        ("ipmitool -E power off", "curl http://admin:hunter2@pdu", 13, "from the environment"),
        ("ipmitool -E power off", "env PDU_PASSWORD=hunter2 pdu off", 13, "from the environment"),
        ("ipmitool -E power off", "sshpass -p hunter2 ssh pdu off", 13, "from the environment"),
        ("ipmitool -E power off", "ipmitool -P hunter2 power off", 13, "from the environment or a file"),
        ("[ipmitool, -E,", "[pdu, --password=hunter2,", 13, "from the environment or a file"),
        (
            "    hosts:",
            "    registries: {local: {url: 'https://me:hunter2@reg:9001'}}\n    hosts:",
            5,
            "move them",
        ),
    ],
)
def test_literal_secret_is_an_error_that_says_what_to_do_and_does_not_repeat_it(
    write, old: str, new: str, line: int, said: str
) -> None:
    assert GOOD.count(old) == 1
    path = write(GOOD.replace(old, new))
    message = rejected(path)
    assert f"{path}:{line}:" in message
    assert said in message
    assert "hunter2" not in message


@pytest.mark.parametrize(
    "line",
    [
        "ipmitool -E power off",
        "ipmitool -f /etc/hil/bmc power off",
        "pdu --password-file /etc/hil/pdu off 3",
        "sh -c 'PDU_PASSWORD=$LAB_PDU pdu off 3'",
        "curl --netrc-file /etc/hil/netrc http://pdu:8080/off",
    ],
)
def test_a_command_may_say_where_its_secret_is(write, line: str) -> None:
    load_inventory(write(GOOD.replace("ipmitool -E power off", f'"{line}"')))


@pytest.mark.parametrize(
    ("left", "right", "key", "said"),
    [
        ("b2", "b3", "right.address", "right has no room at 0000:b3:00.0 beside left"),
        ("b2", "b8", "right.address", "keep addresses 7 buses apart"),
        ("b8", "b2", "right.address", "right has no room at 0000:b2:00.0 beside left"),
        ("b2", "b9", None, ""),
        ("b2", "ab", None, ""),
        ("03", "b2", "left.address", "from 0000:04:00.0 to 0000:fd:00.0 there is room"),
        ("04", "fd", None, ""),
        ("b2", "fe", "right.address", "an emulated card cannot stand at 0000:fe:00.0"),
    ],
)
def test_emulated_cards_need_room_on_the_bus(
    write, left: str, right: str, key: str | None, said: str
) -> None:
    """Root port, switch and four devices: each card takes seven buses (n3000.md 1.1)."""
    path = write(GOOD.replace('"1B:00.0"', f"0000:{left}:00.0").replace(":5e:", f":{right}:"))
    if key is None:
        load_inventory(path)
    else:
        message = rejected(path)
        assert f"cards.{key}: " in message
        assert said in message


def test_where_an_emulated_card_moves_to_there_is_room_as_well(write) -> None:
    def moved(address: str) -> Path:
        return write(GOOD.replace("00:00:02}", f"00:00:02, emulated: {{moves_to: {address}}}}}"))

    load_inventory(moved("0000:5d:00.0"))  # its own place, but for one bus
    message = rejected(moved("0000:1c:00.0"))
    assert ":10: labs.bench.hosts.twin.cards.right.emulated.moves_to: right has no room at" in message
    assert "cannot stand at 0000:5e:00.1" in rejected(moved("0000:5e:00.1"))
    load_inventory(moved("0001:1b:00.0"))  # another domain has buses of its own


def test_real_cards_stand_where_their_machine_has_them(write) -> None:
    """In a virtual machine, two cards may be neighbours on its first bus."""
    more = "          card1: {address: 0000:00:05.0}\n          card2: {address: 0000:00:06.0}\n"
    lab = load_inventory(write(GOOD + more)).lab()
    assert lab.card("rack7/card2")[1].address == "0000:00:06.0"


@pytest.mark.parametrize(
    ("entry", "said"),
    [
        ("controllers: {sc: {role: system-controller}}", "exactly one of emulated and url"),
        ("controllers: {sc: {role: system-controller, emulated: true, url: 'https://sc'}}", "exactly one of"),
        ("controllers: {sc: {role: system-controller, url: 'https://sc'}}", "needs credentials"),
        ("controllers: {sc: {role: system-controller, url: sc}}", "not a URL"),
        (
            "controllers: {sc: {role: system-controller, emulated: true, ca_file: a.crt}}",
            "belongs to a real controller",
        ),
        ("controllers: {s1: {role: subcloud, emulated: true}}", "names its system controller in 'parent'"),
        ("controllers: {s1: {role: subcloud, parent: sc, emulated: true}}", "no controller 'sc'"),
        ("controllers: {s1: {role: subcloud, parent: s1, emulated: true}}", "'s1' is a subcloud itself"),
        ("registries: {local: {url: 'https://x:99999'}}", "not a URL"),
        ("registries: {local: {url: 'https://[::1'}}", "not a URL"),
        ("registries: {local: {}}", "exactly one of emulated and url"),
    ],
)
def test_rules_for_controllers_and_registries(write, entry: str, said: str) -> None:
    message = rejected(write(GOOD.replace("    hosts:", f"    {entry}\n    hosts:")))
    assert said in message
    assert ":5:" in message


def test_profile_errors_of_the_emulator_are_placed_in_the_file(write) -> None:
    def check(values: Mapping[str, object]) -> None:
        if values != {"busy": True}:
            raise ConfigurationError("There is no such value.", hint="Known: busy.")

    with_profile = "00:00:02, emulated: {{profile: {}}}}}"
    check_profiles(
        load_inventory(write(GOOD.replace("00:00:02}", with_profile.format("{busy: true}")))), check
    )
    path = write(GOOD.replace("00:00:02}", with_profile.format("{busy: true, bsy: 1}")))
    with pytest.raises(ConfigurationError) as caught:
        check_profiles(load_inventory(path), check)
    assert caught.value.message == (
        f"{path}:10: labs.bench.hosts.twin.cards.right.emulated.profile.bsy: "
        "There is no such value. Known: busy."
    )


@pytest.mark.parametrize(
    ("entry", "key"),
    [
        ("{sr_cancelled: [128], sr_root: root-key-A}", "sr_cancelled.0"),
        ("{sr_cancelled: [0]}", "sr_cancelled needs sr_root"),
        ("{flash_count: -1}", "flash_count"),
        ("{moves_to: there}", "moves_to"),
    ],
)
def test_initial_state_of_an_emulated_card_is_checked(write, entry: str, key: str) -> None:
    assert key in rejected(write(GOOD.replace("00:00:02}", f"00:00:02, emulated: {entry}}}")))


def test_root_hash_may_be_given_as_fpga_tools_print_it(write) -> None:
    digest = "0x" + "AB" * 32
    text = GOOD.replace("00:00:02}", f'00:00:02, emulated: {{sr_root: "{digest}"}}}}')
    card = load_inventory(write(text)).lab().card("twin/right")[1]
    assert card.emulated is not None
    assert card.emulated.sr_root == "ab" * 32


def test_unknown_host_card_and_lab_name_the_known_ones(write) -> None:
    inventory = load_inventory(write(GOOD))
    with pytest.raises(ConfigurationError, match="no lab 'bnch'") as lab_error:
        inventory.lab("bnch")
    assert "'bench'" in lab_error.value.hint
    with pytest.raises(ConfigurationError, match="no host 'twins'") as host_error:
        inventory.lab().host("twins")
    assert "Known: twin, rack7." in host_error.value.hint
    with pytest.raises(ConfigurationError, match="no card 'twin/lft'") as card_error:
        inventory.lab().card("twin/lft")
    assert "Did you mean 'twin/left'?" in card_error.value.hint


REPLAYED = """\
version: 1
default_lab: bench
labs:
  bench:
    hosts:
      node:
        emulated: {recording: cards/node.json}
        cards: {card0: {address: 0000:b2:00.0}}
"""


def test_a_host_may_be_replayed_from_a_recording_beside_the_inventory(write, tmp_path: Path) -> None:
    host, card = load_inventory(write(REPLAYED)).lab().card("node/card0")
    assert host.emulated is not None
    assert host.emulated.recording == tmp_path / "cards/node.json"
    assert not host.real
    assert not host.can_power  # what that does to the cards was not recorded
    assert card.identity is None  # it may not have been readable


def test_a_replayed_card_is_as_it_was_recorded(write) -> None:
    text = REPLAYED.replace("0000:b2:00.0}", "0000:b2:00.0, emulated: {flash_count: 3}}")
    assert "hosts.node.cards.card0.emulated: the card 'card0' is as its host's recording has it" in rejected(
        write(text)
    )


@pytest.mark.parametrize(
    ("controllers", "host", "real"),
    [
        ("central: {role: system-controller, emulated: true}", "emulated: {}", False),
        ("central: {role: system-controller, emulated: true}", "local: true", True),
        (
            'central: {role: system-controller, url: "https://10.0.0.1:5000/v3", credentials: {env: A}}',
            "emulated: {}",
            True,
        ),
        (
            "central: {role: system-controller, emulated: true}\n"
            '      sub: {role: subcloud, parent: central, url: "https://10.0.0.1:5000/v3", '
            "credentials: {env: A}}",
            "emulated: {}",
            True,
        ),
    ],
)
def test_a_system_is_real_where_anything_of_it_is(write, controllers: str, host: str, real: bool) -> None:
    text = (
        f"version: 1\ndefault_lab: a\nlabs:\n  a:\n    controllers:\n      {controllers}\n"
        f"    hosts:\n      one: {{system: central, {host}}}\n"
    )
    assert load_inventory(write(text)).lab().is_real("central") is real


def test_a_file_that_was_changed_is_read_anew(tmp_path: Path) -> None:
    file = tmp_path / "inventory.yaml"
    for name in ("one", "two", "one"):
        file.write_text(f"version: 1\ndefault_lab: {name}\nlabs:\n  {name}:\n    hosts: {{}}\n")
        assert load_inventory(file).default_lab == name
