"""Docker, ctr and crictl of an emulated host: the command lines of StarlingX run the tool, and how they fail.

The lines are those of sysinv's agent in its docker and containerd eras; the failures are those of the
engines' clients.
"""

from collections.abc import Callable
from typing import Any

import pytest

from harness.emulator.card import CardState

REPOSITORY = "registry.local:9001/docker.io/starlingx/n3000-opae"
DOCKER_IMAGE = f"{REPOSITORY}:stx.4.0-v1.0.0"
CTR_IMAGE = f"{REPOSITORY}:stx.8.0-v1.0.2"
CACHE = "/var/local/share/applications/sysinv"
DOCKER = (
    "docker run -t --privileged -e LC_ALL=en_US.UTF-8 -e LANG=en_US.UTF-8 "
    f"-v {CACHE}:/mnt/images {DOCKER_IMAGE} "
    "fpgasupdate -y --log-level debug /mnt/images/user.bin 0000:b2:00.0"
)
CTR_FOR = (
    "ctr -n=k8s.io run --rm --privileged --env LC_ALL=en_US.UTF-8 --env LANG=en_US.UTF-8 --cgroup platform "
    f"--mount type=bind,src={CACHE},dst=/mnt/images,options=rbind:ro {{image}} n3000-opae "
    "fpgasupdate -y --log-level debug /mnt/images/user.bin 0000:b2:00.0"
)
CTR = CTR_FOR.format(image=CTR_IMAGE)
FLASH = {"docker": DOCKER, "containerd": CTR}
RESET = {
    "docker": f"docker run -t --privileged {DOCKER_IMAGE} rsu bmcimg 0000:b2:00.0",
    "containerd": f"ctr -n=k8s.io run --rm --privileged {CTR_IMAGE} v1 rsu bmcimg 0000:b2:00.0",
}
LIST = f"ctr -n=k8s.io container list image=={CTR_IMAGE}"
ERAS = ["docker", "containerd"]


@pytest.fixture
def console_of(new_host: Any, console_for: Any, recipe_image: Any) -> Callable[..., Any]:
    """Makes a console of a host of an era, with one card and an image in sysinv's cache."""

    def make(era: str, state: CardState | None = None, **profile: Any) -> Any:
        generation = {"docker": "A", "containerd": "C"}[era]
        console = console_for(
            new_host("0000:b2:00.0", state=state, generation=generation, era=era, **profile)
        )
        console.run(f"mkdir -p {CACHE}")
        console.host.vfs.write(f"{CACHE}/user.bin", recipe_image("unsigned"))
        return console

    return make


@pytest.mark.parametrize("era", ERAS)
def test_starlingx_flashes_and_resets_by_the_image(
    console_of: Callable[..., Any], recipe_image: Any, era: str
) -> None:
    console = console_of(era)
    result = console.run(FLASH[era])
    assert (result.code, result.err) == (0, "")
    assert "[INFO    ] updating from file /mnt/images/user.bin with size 17408" in result.out
    assert "[INFO    ] Secure update OK" in result.out
    assert console.card.state.user_page == recipe_image("unsigned")[1024:]
    assert console.run(RESET[era]).code == 0
    assert console.card.running_page == "user"


@pytest.mark.parametrize("era", ERAS)
def test_the_tools_are_in_the_image_only(console_of: Callable[..., Any], era: str) -> None:
    console = console_of(era)
    for tool in ("fpgasupdate", "rsu", "fpgainfo"):
        result = console.run(f"{tool} --help")
        assert (result.code, result.err) == (127, f"bash: line 1: {tool}: command not found\n")
    assert console.run("which fpgasupdate").code == 1


def test_a_host_with_tools_has_no_engine(console: Any) -> None:
    assert console.run("which docker ctr crictl").out == ""


@pytest.mark.parametrize("era", ERAS)
def test_the_exit_code_is_the_tools(console_of: Callable[..., Any], recipe_root: Any, era: str) -> None:
    console = console_of(era, CardState(sr_root=recipe_root("A/csk0")))
    assert console.run(FLASH[era]).code == {"docker": 5, "containerd": 1}[era]


def test_a_terminal_has_one_stream_and_ends_lines_twice(console_of: Callable[..., Any]) -> None:
    console = console_of("docker")
    with_terminal = console.run(RESET["docker"])
    without = console.run(RESET["docker"].replace(" -t", ""))
    assert (with_terminal.err, without.out) == ("", "")
    assert with_terminal.out.endswith(" - RSU operation complete\r\n")
    assert without.err.endswith(" - RSU operation complete\n")
    assert "\r" not in without.err


# -- a missing image ----------------------------------------------------------------------------------


def test_docker_without_the_image(console_of: Callable[..., Any]) -> None:
    console = console_of("docker")
    console.host.condition("no-tool-image", True)
    result = console.run(DOCKER)
    assert (result.code, result.out) == (125, "")
    assert result.err.startswith(f"Unable to find image '{DOCKER_IMAGE}' locally\n")
    assert "docker: Error response from daemon: " in result.err
    assert console.run("docker images -q").out.count("n3000") == 0
    console.host.condition("no-tool-image", False)
    assert console.run(DOCKER).code == 0


def test_containerd_without_the_image(console_of: Callable[..., Any]) -> None:
    console = console_of("containerd")
    console.host.condition("no-tool-image", True)
    result = console.run(CTR)
    assert (result.code, result.err) == (1, f'ctr: image "{CTR_IMAGE}": not found\n')
    assert console.run("ctr -n=k8s.io images list -q").out == ""
    assert console.card.state.flash_count == 0


def test_garbage_collection_takes_the_image(console_of: Callable[..., Any]) -> None:
    console = console_of("containerd")
    assert CTR_IMAGE in console.run("ctr --connect-timeout=2s -n=k8s.io images list -q").out
    assert console.run(f"crictl rmi {CTR_IMAGE}").out == f"Deleted: {CTR_IMAGE}\n"
    assert console.run("crictl images -q").out == ""
    assert console.run(CTR).code == 1


def test_an_image_without_the_program(console_of: Callable[..., Any]) -> None:
    result = console_of("docker").run(f"docker run {DOCKER_IMAGE} fpgaflash")
    assert (result.code, '"fpgaflash": executable file not found in $PATH' in result.err) == (127, True)
    result = console_of("containerd").run(f"ctr -n=k8s.io run --rm {CTR_IMAGE} v1 fpgaflash")
    assert (result.code, '"fpgaflash": executable file not found in $PATH' in result.err) == (1, True)


@pytest.mark.parametrize(
    ("era", "command", "code", "text"),
    [
        ("docker", "docker run --rn x y", 125, "unknown flag: --rn"),
        ("docker", "docker run", 1, '"docker run" requires at least 1 argument.'),
        ("docker", "docker fly", 1, "docker: 'fly' is not a docker command."),
        ("containerd", f"ctr run {CTR_IMAGE}", 1, "ctr: container id must be provided"),
        ("containerd", "crictl rmi none:1", 1, 'no such image "none:1"'),
        ("containerd", "ctr -n=k8s.io container rm v1", 1, 'container "v1" in namespace "k8s.io": not found'),
    ],
)
def test_wrong_words(console_of: Callable[..., Any], era: str, command: str, code: int, text: str) -> None:
    result = console_of(era).run(command)
    assert (result.code, text in result.err) == (code, True)


# -- processes ----------------------------------------------------------------------------------------

CLIENT = {"docker": "docker", "containerd": "ctr"}


@pytest.mark.parametrize("era", ERAS)
def test_a_signal_to_the_client_reaches_the_tool(
    console_of: Callable[..., Any], running: Any, era: str
) -> None:
    console = console_of(era)
    update = running(console, "", "transferring", command=FLASH[era], program=CLIENT[era])
    console.run(f"kill -TERM {update.pid}")
    console.card.release()
    result = update.end()
    assert (result.code, "[ERROR   ] Caught SIGTERM" in result.out) == (1, True)


@pytest.mark.parametrize("era", ERAS)
def test_the_tool_goes_on_when_its_client_is_killed(
    console_of: Callable[..., Any], recipe_image: Any, running: Any, era: str
) -> None:
    console = console_of(era)
    update = running(console, "", "transferring", command=FLASH[era], program=CLIENT[era])
    console.run(f"kill -KILL {update.pid}")
    assert update.end().code == -9
    assert console.run("pgrep fpgasupdate").code == 0
    console.card.release()
    console.run("sleep 60")
    assert console.run("pgrep fpgasupdate").code == 1
    assert console.card.state.user_page == recipe_image("unsigned")[1024:]


@pytest.mark.parametrize("lost", ["client", "power"])
def test_what_is_left_of_a_container_keeps_its_name_taken(
    console_of: Callable[..., Any], running: Any, lost: str
) -> None:
    console = console_of("containerd")
    update = running(console, "", "transferring", command=CTR, program="ctr")
    if lost == "client":
        console.run(f"kill -KILL {update.pid}")
        update.end()
        running_still = console.run("ctr -n=k8s.io container rm n3000-opae")
        assert (running_still.code, "cannot delete a non stopped container" in running_still.err) == (1, True)
        console.card.release()
        console.run("sleep 60")
    else:
        console.host.power_off()
        update.end()
        console.card.release()
        console.host.power_on()
    result = console.run(CTR)
    assert (result.code, result.err) == (1, 'ctr: snapshot "n3000-opae": already exists\n')
    assert console.run(LIST).out.splitlines()[1].split()[:2] == ["n3000-opae", CTR_IMAGE]
    assert console.run("ctr -n=k8s.io container rm n3000-opae").code == 0
    assert console.run(LIST).out.splitlines()[1:] == []
    assert console.run(CTR).code == 0


def test_docker_keeps_what_is_not_removed(console_of: Callable[..., Any]) -> None:
    console = console_of("docker")
    console.run(RESET["docker"])
    console.run(RESET["docker"].replace("docker run", "docker run --rm --name gone"))
    lines = console.run("docker ps -a").out.splitlines()
    assert len(lines) == 1
    assert lines[0].endswith(f"{DOCKER_IMAGE}   Exited (0)")
    console.run(f"docker rm {lines[0].split()[0]}")
    assert console.run("docker ps -a").out == ""
