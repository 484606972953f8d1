"""The host agent: command lines of each era, inventory, reset at boot, failures (section 3)."""

from __future__ import annotations

import pytest
from support.starlingx_lab import CARD, RECIPES, Lab, MakeLab

from harness.emulator.card import CardState
from harness.emulator.host import ToolEra

CACHE = "/var/local/share/applications/sysinv"
RESET_FLAG = "/var/run/.sysinv_n3000_reset"
RETIMER_FLAG = "/etc/platform/.sysinv_n3000_retimer"
TAGS = "registry.local:9001/docker.io/starlingx/n3000-opae"


def watch(lab: Lab) -> list[str]:
    """Return where every command line of the host will be put."""
    seen: list[str] = []
    start = lab.machine.run

    def run(command, streams, env=None):  # type: ignore[no-untyped-def]
        words = [f"{name}={value}" for name, value in (env or {}).items()]
        seen.append(" ".join([*words, command]))
        return start(command, streams, env)

    lab.machine.run = run  # type: ignore[method-assign]
    return seen


def flash_unsigned(lab: Lab) -> str:
    uuid = lab.upload("unsigned")
    lab.apply(uuid)
    lab.update()
    return f"functional-8086-0b30-{uuid}.bit"


def flash_lines(era: ToolEra, file: str) -> list[str]:
    """Return the command lines of section 3.2, steps 4, 5 and 7."""
    tool = "fpgasupdate -y --log-level debug"
    lines = {
        "host": [f"LC_ALL=C.UTF-8 LANG=C.UTF-8 /usr/bin/{tool} {CACHE}/{file} {CARD}"],
        "docker": [
            f"docker run -t --privileged -e LC_ALL=en_US.UTF-8 -e LANG=en_US.UTF-8 -v {CACHE}:/mnt/images "
            f"{TAGS}:stx.4.0-v1.0.0 {tool} /mnt/images/{file} {CARD}"
        ],
        "containerd": [
            f"ctr -n=k8s.io container list image=={TAGS}:stx.8.0-v1.0.2",
            "ctr -n=k8s.io run --rm --privileged --env LC_ALL=en_US.UTF-8 --env LANG=en_US.UTF-8 "
            f"--cgroup platform --mount type=bind,src={CACHE},dst=/mnt/images,options=rbind:ro "
            f"{TAGS}:stx.8.0-v1.0.2 n3000-opae {tool} /mnt/images/{file} {CARD}",
        ],
    }
    return ["systemctl stop hostw", *lines[era], "systemctl start hostw"]


@pytest.mark.parametrize(
    ("era", "generation", "release"),
    [("host", "D", "head"), ("docker", "A", "stx-2020-07"), ("containerd", "A", "stx-8")],
)
def test_image_is_written_and_runs_after_the_next_boot(
    make_lab: MakeLab, era: ToolEra, generation: str, release: str
) -> None:
    lab = make_lab(release, era=era, generation=generation)
    before = lab.device["bitstream_id"]
    seen = watch(lab)
    file = flash_unsigned(lab)
    assert lab.statuses() == ["completed"]
    assert [line.replace("'", "") for line in seen] == flash_lines(era, file)
    assert lab.run(f"ls {CACHE}") == ""
    assert lab.device["bitstream_id"] == before
    lab.reboot()
    # What the recipe says, not what the system says.
    assert lab.machine.card("card0").running_page == "user"
    assert lab.run(f"ls {RESET_FLAG}") == f"{RESET_FLAG}\n"
    assert lab.device["boot_page"] == "user"
    assert lab.device["bitstream_id"] != before
    assert int(lab.device["bitstream_id"], 16) == RECIPES["unsigned"].bitstream_id


@pytest.mark.parametrize(
    ("era", "generation", "line"),
    [
        ("host", "D", f"/usr/bin/rsu bmcimg {CARD}"),
        ("docker", "A", f"docker run -t --privileged {TAGS}:stx.4.0-v1.0.0 rsu bmcimg {CARD}"),
        (
            "containerd",
            "A",
            f"ctr -n=k8s.io run --rm --privileged {TAGS}:stx.8.0-v1.0.2 v1 rsu bmcimg {CARD}",
        ),
    ],
)
def test_card_is_reset_at_each_boot(make_lab: MakeLab, era: ToolEra, generation: str, line: str) -> None:
    lab = make_lab(era=era, generation=generation)
    seen = watch(lab)
    lab.reboot()
    assert seen.count(line) == 1
    lab.reboot()
    assert seen.count(line) == 2


def test_inventory_is_what_files_and_tools_show(make_lab: MakeLab) -> None:
    root = "7769" * 16
    lab = make_lab(state=CardState(sr_root=root, sr_cancelled=frozenset({0, 1, 2, 5})))
    shown = {
        name: lab.device[name]
        for name in (
            "root_key",
            "revoked_key_ids",
            "bmc_build_version",
            "bmc_fw_version",
            "retimer_a_version",
            "retimer_b_version",
        )
    }
    # Versions of the samples; hash without 0x, as drivers of the kernel show it.
    assert shown == {
        "root_key": root,
        "revoked_key_ids": "0-2,5",
        "bmc_build_version": "D.2.0.6",
        "bmc_fw_version": "D.2.0.21",
        "retimer_a_version": "101c.1064",
        "retimer_b_version": "101c.1064",
    }


def test_older_inventory_reads_the_out_of_tree_drivers(make_lab: MakeLab) -> None:
    root = "7769" * 16
    lab = make_lab("stx-8", era="containerd", generation="A", state=CardState(sr_root=root))
    assert lab.device["root_key"] == f"0x{root}"
    assert lab.device["bmc_fw_version"] == "D.2.0.21"
    assert lab.device["boot_page"] == "factory"


def test_root_key_that_is_not_programmed_is_empty(lab: Lab) -> None:
    assert lab.device["root_key"] == ""


def test_inventory_is_renewed_by_a_restart_of_the_agent_only(lab: Lab) -> None:
    before = lab.device["root_key"]
    uuid = lab.upload("root-key-A", "root-key")
    lab.apply(uuid)
    lab.update()
    assert lab.statuses() == ["completed"]
    lab.run(f"rsu bmcimg {CARD}")
    lab.pass_time(3000)
    assert lab.device["root_key"] == before == ""
    lab.run("systemctl restart sysinv-agent")
    assert lab.system.settle()
    programmed = lab.machine.card("card0").state.root("SR")
    assert programmed
    assert lab.device["root_key"] == programmed


def test_changed_address_costs_labels_and_states(make_lab: MakeLab) -> None:
    lab = make_lab(moves=True)
    lab.assign("k=v")
    lab.apply(lab.upload("unsigned"), "k=v")
    lab.update()
    lab.reboot()
    assert lab.device["pciaddr"] == "0000:e2:00.0"
    assert lab.get("/device_labels") == {"device_labels": []}
    assert lab.statuses() == []


def test_missing_tool_is_reported_as_failed(lab: Lab) -> None:
    lab.machine.condition("missing-fpgasupdate", True)
    flash_unsigned(lab)
    assert lab.statuses() == ["failed"]
    assert (
        "/usr/bin/fpgasupdate not found, the opae package is not installed. "
        f"Cannot update the image of device {CARD}." in lab.system.agents["controller-0"].log
    )
    # The text of the error goes where progress is logged, and is stored nowhere.
    assert any(line.endswith("err: None") and "not found" in line for line in lab.system.conductor.log)
    assert lab.machine.services["hostw"] is True


def test_missing_image_file_is_reported_as_failed(lab: Lab) -> None:
    uuid = lab.upload("unsigned")
    lab.apply(uuid)
    (lab.system.images_folder / f"functional-8086-0b30-{uuid}.bit").unlink()
    lab.update()
    assert lab.statuses() == ["failed"]
    assert lab.machine.services["hostw"] is True


def test_full_disk_is_reported_as_failed(lab: Lab) -> None:
    lab.machine.condition("disk-full", True)
    flash_unsigned(lab)
    assert lab.statuses() == ["failed"]


def test_refused_image_is_never_reported(lab: Lab) -> None:
    lab.apply(lab.upload("root-key-A", "root-key"))
    lab.update()
    lab.reboot()
    flash_unsigned(lab)
    assert lab.statuses() == ["completed", "in-progress"]
    assert lab.machine.services["hostw"] is True


def test_python2_reported_it(make_lab: MakeLab) -> None:
    lab = make_lab("stx-2020-07", era="docker", generation="A", off=("labels-lost-at-boot",))
    lab.apply(lab.upload("root-key-A", "root-key"))
    lab.update()
    lab.reboot()
    flash_unsigned(lab)
    assert lab.statuses() == ["completed", "failed"]


def test_retimers_are_reset_after_an_image_that_includes_them(lab: Lab) -> None:
    fields = {"bmc": "true", "retimer_included": "true"}
    lab.apply(lab.upload("bmc-unsigned", **fields))
    lab.update()
    assert lab.run(f"ls {RETIMER_FLAG}") == f"{RETIMER_FLAG}\n"
    seen = watch(lab)
    lab.reboot()
    resets = [line for line in seen if "rsu" in line]
    assert resets == [
        f"/usr/bin/rsu bmcimg {CARD}",
        f"/usr/bin/rsu retimer {CARD}",
        f"/usr/bin/rsu bmcimg {CARD}",
    ]
    assert "No such file" in lab.run(f"ls {RETIMER_FLAG}")


def test_failed_reset_leaves_the_host_locked(lab: Lab) -> None:
    lab.machine.condition("no-image-load", True)
    seen = watch(lab)
    lab.reboot()
    assert len([line for line in seen if line.startswith("/usr/bin/rsu")]) == 60
    assert lab.sysinv_host["administrative"] == "locked"
    assert "No such file" in lab.run(f"ls {RESET_FLAG}")


def test_reboot_in_the_middle_of_an_update_leaves_it_in_progress(lab: Lab) -> None:
    lab.apply(lab.upload("unsigned"))

    def reboot_once(name: str, action: str) -> None:
        if (name, action) == ("hostw", "stop"):
            lab.machine.reboot()

    lab.machine.on_service.append(reboot_once)
    lab.update()
    lab.pass_time(600)
    assert lab.statuses() == ["in-progress"]
    assert lab.sysinv_host["device_image_update"] == "in-progress"


def test_lock_and_unlock_reset_the_card(lab: Lab) -> None:
    flash_unsigned(lab)
    lab.host_action("lock")
    assert lab.sysinv_host["administrative"] == "locked"
    lab.host_action("unlock")
    host = lab.sysinv_host
    states = (host["administrative"], host["operational"], host["availability"], host["reboot_needed"])
    assert states == ("unlocked", "enabled", "available", False)
    assert lab.device["boot_page"] == "user"


def test_a_report_that_nobody_took_is_made_again(make_lab: MakeLab) -> None:
    lab = make_lab("corrected")
    lab.pass_time(121)
    lab.system.casts.stop()
    lab.machine.card("card0").fit(CardState(sr_root="ab" * 32))
    lab.pass_time(121)
    assert lab.device["root_key"] == ""
    lab.system.casts.start()
    lab.pass_time(61)
    assert lab.device["root_key"] == "ab" * 32


def test_a_row_that_was_lost_is_reported_again(make_lab: MakeLab) -> None:
    lab = make_lab("corrected")
    lab.pass_time(121)
    lab.system.database.remove("pci_devices", lab.system.database.all("pci_devices")[0]["id"])
    lab.pass_time(61)
    assert lab.device["boot_page"] == "factory"


def test_a_host_that_is_as_it_was_is_not_read_again_and_again(make_lab: MakeLab) -> None:
    lab = make_lab("corrected")
    lab.pass_time(121)
    asked = watch(lab)
    lab.pass_time(3600)
    assert asked == []
    lab.machine.card("card0").fit(CardState(sr_root="ab" * 32))
    lab.pass_time(61)
    assert asked


def test_power_that_fails_in_a_container_leaves_it_behind_once(make_lab: MakeLab) -> None:
    """LP 2142481: what was to remove it with its end is gone as well."""
    lab = make_lab("corrected", era="containerd", generation="A", on=("leftover-container",))
    lab.machine.condition("power-cut-in-container", True)
    lab.run(f"ctr -n=k8s.io run --rm {TAGS}:stx.8.0-v1.0.2 v1 rsu bmcimg {CARD}")
    lab.pass_time(600)
    assert "v1 " in lab.run("ctr -n=k8s.io container list")
    assert "power-cut-in-container" not in lab.machine.conditions
    assert lab.sysinv_host["administrative"] == "locked", "the reset at the boot found its name taken"
