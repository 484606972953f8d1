"""``docker``, ``ctr`` and ``crictl``: as much of them as running and listing tool images needs.

Messages and exit codes are those of docker 19.03 and containerd 1.4, the engines of the two tool eras.
"""

from __future__ import annotations

import hashlib
import secrets
from typing import Final

from harness.emulator.containers import Engine, Mount
from harness.emulator.programs.base import Invocation, Main, ProgramExit

_DAEMON_ERROR, _NOT_FOUND = 125, 127
_DOCKER_FLAGS: Final = {"-t", "--tty", "--privileged", "--rm", "-i", "--interactive"}
_DOCKER_VALUES: Final = {"-e": "env", "--env": "env", "-v": "mount", "--volume": "mount", "--name": "name"}
_CTR_FLAGS: Final = {"--rm", "--privileged", "-t", "--tty"}
_CTR_VALUES: Final = {"--env": "env", "--mount": "mount", "--cgroup": "cgroup"}


def _engine(run: Invocation) -> Engine:
    engine = run.host.engine
    assert engine is not None, "only hosts that have an engine have its clients"
    return engine


def _split(
    run: Invocation, words: list[str], flags: set[str], values: dict[str, str]
) -> tuple[set[str], dict[str, list[str]], list[str]]:
    """Return flags, values by meaning, and what follows the options. :raises ProgramExit: unknown option."""
    given: set[str] = set()
    found: dict[str, list[str]] = {meaning: [] for meaning in values.values()}
    rest = list(words)
    while rest and rest[0].startswith("-"):
        word = rest.pop(0)
        name, equals, value = word.partition("=")
        if word in flags:
            given.add(word)
        elif name in values and (equals or rest):
            found[values[name]].append(value if equals else rest.pop(0))
        else:
            run.err(f"unknown flag: {word}\nSee '{run.name} run --help'.\n")
            raise ProgramExit(_DAEMON_ERROR if run.name == "docker" else 1)
    return given, found, rest


def _environment(pairs: list[str]) -> dict[str, str]:
    return dict(pair.split("=", 1) for pair in pairs if "=" in pair)


# -- docker ---------------------------------------------------------------------------------------


def docker(run: Invocation) -> int:
    """Run a container in the foreground; list images and containers."""
    command, *words = run.argv[1:] or ["help"]
    if command == "image" and words[:1] == ["ls"]:
        command, words = "images", words[1:]
    if command == "run":
        return _docker_run(run, words)
    if command == "images":
        return _docker_images(run, words)
    if command == "ps":
        for container in _engine(run).containers.values():
            run.out(f"{container.name}   {container.image}   {_state(container.exit_status)}\n")
        return 0
    if command == "rm":
        for name in words:
            _engine(run).remove(name)
            run.out(f"{name}\n")
        return 0
    run.err(f"docker: '{command}' is not a docker command.\nSee 'docker --help'\n")
    return 1


def _docker_run(run: Invocation, words: list[str]) -> int:
    flags, values, rest = _split(run, words, _DOCKER_FLAGS, _DOCKER_VALUES)
    if not rest:
        run.err("\"docker run\" requires at least 1 argument.\nSee 'docker run --help'.\n")
        return 1
    image, *command = rest
    engine = _engine(run)
    if image not in engine.images:
        run.err(
            f"Unable to find image '{image}' locally\n"
            f"docker: Error response from daemon: manifest for {image} not found: "
            "manifest unknown: manifest unknown.\nSee 'docker run --help'.\n"
        )
        return _DAEMON_ERROR
    if not command or engine.program(command[0]) is None:
        run.err(
            "docker: Error response from daemon: OCI runtime create failed: container_linux.go: starting "
            f'container process caused: exec: "{(command or [""])[0]}": executable file not found in $PATH: '
            "unknown.\n"
        )
        return _NOT_FOUND
    name = (values["name"] or [secrets.token_hex(6)])[-1]
    mounts = tuple(Mount(*mount.split(":")[:2]) for mount in values["mount"])
    terminal = bool(flags & {"-t", "--tty"})
    env = _environment(values["env"])
    status = engine.run(run, name, image, command, env, mounts, terminal=terminal)
    if "--rm" in flags:
        engine.remove(name)
    return status


def _docker_images(run: Invocation, words: list[str]) -> int:
    form = words[words.index("--format") + 1] if "--format" in words else ""
    if not form:
        run.out(f"{'REPOSITORY':60} {'TAG':20} IMAGE ID\n")
    for image in _engine(run).images:
        repository, _, tag = image.rpartition(":")
        if form:
            run.out(form.replace("{{.Repository}}", repository).replace("{{.Tag}}", tag) + "\n")
        else:
            run.out(f"{repository:60} {tag:20} {hashlib.sha256(image.encode()).hexdigest()[:12]}\n")
    return 0


def _state(status: int | None) -> str:
    return "Up" if status is None else f"Exited ({status})"


# -- containerd -----------------------------------------------------------------------------------


#: What it takes before each of its commands.
_CTR_OF_ALL = ("-n=", "--namespace=", "--connect-timeout=")


def ctr(run: Invocation) -> int:
    """Containerd's own client: run a container in the foreground; list images; list and remove containers."""
    words = [word for word in run.argv[1:] if not word.startswith(_CTR_OF_ALL)]
    match words:
        case ["run", *rest]:
            return _ctr_run(run, rest)
        case ["images" | "image" | "i", "list" | "ls", *rest]:
            _list(run, "REF", _engine(run).images, quiet="-q" in rest)
            return 0
        case ["containers" | "container" | "c", "list" | "ls", *rest]:
            return _ctr_containers(run, rest)
        case ["containers" | "container" | "c", "rm" | "delete" | "del", *names]:
            return max((_ctr_remove(run, name) for name in names), default=0)
    run.err(f"No help topic for '{(words or [''])[0]}'\n")
    return 3


def _ctr_run(run: Invocation, words: list[str]) -> int:
    flags, values, rest = _split(run, words, _CTR_FLAGS, _CTR_VALUES)
    if len(rest) < 2:
        run.err("ctr: container id must be provided\n")
        return 1
    image, name, *command = rest
    engine = _engine(run)
    if image not in engine.images:
        run.err(f'ctr: image "{image}": not found\n')
        return 1
    if name in engine.containers:  # one that a reboot or a killed client has left
        run.err(f'ctr: snapshot "{name}": already exists\n')
        return 1
    if not command or engine.program(command[0]) is None:
        run.err(
            "ctr: OCI runtime create failed: container_linux.go: starting container process caused: "
            f'exec: "{(command or [""])[0]}": executable file not found in $PATH: unknown\n'
        )
        return 1
    mounts = []
    for text in values["mount"]:
        parts = dict(pair.split("=", 1) for pair in text.split(",") if "=" in pair)
        mounts.append(Mount(parts.get("src", ""), parts.get("dst", "")))
    env = _environment(values["env"])
    terminal = bool(flags & {"-t", "--tty"})
    status = engine.run(run, name, image, command, env, tuple(mounts), terminal=terminal)
    if "--rm" in flags:
        engine.remove(name)
    return status


def _ctr_containers(run: Invocation, words: list[str]) -> int:
    wanted = [word.partition("==")[2] for word in words if word.startswith("image==")]
    found = [c for c in _engine(run).containers.values() if not wanted or c.image in wanted]
    if "-q" in words:
        run.out("".join(f"{container.name}\n" for container in found))
        return 0
    run.out(f"{'CONTAINER':14} {'IMAGE':72} RUNTIME\n")
    for container in found:
        run.out(f"{container.name:14} {container.image:72} io.containerd.runc.v2\n")
    return 0


def _ctr_remove(run: Invocation, name: str) -> int:
    container = _engine(run).containers.get(name)
    if container is None:
        run.err(f'ctr: container "{name}" in namespace "k8s.io": not found\n')
        return 1
    if container.exit_status is None:
        run.err("ctr: cannot delete a non stopped container: {running 0 0001-01-01 00:00:00 +0000 UTC}\n")
        return 1
    _engine(run).remove(name)
    return 0


def _list(run: Invocation, title: str, names: list[str], *, quiet: bool) -> None:
    if not quiet:
        run.out(f"{title}\n")
    run.out("".join(f"{name}\n" for name in names))


def crictl(run: Invocation) -> int:
    """The kubelet's client: list images, and remove one as its garbage collection does."""
    match run.argv[1:]:
        case ["images" | "image" | "img", *rest]:
            images = _engine(run).images
            if "-q" not in rest and "--quiet" not in rest:
                run.out(f"{'IMAGE':60} TAG\n")
            for image in images:
                repository, _, tag = image.rpartition(":")
                run.out(f"{repository:60} {tag}\n")
            return 0
        case ["rmi", *names]:
            engine = _engine(run)
            for name in names:
                if name not in engine.images:
                    run.err(f'no such image "{name}"\n')
                    return 1
                engine.images.remove(name)
                run.out(f"Deleted: {name}\n")
            return 0
    run.err("crictl: unknown command\n")
    return 1


def programs(era: str) -> dict[str, Main]:
    """Return the clients of the engine of a tool era."""
    clients: dict[str, dict[str, Main]] = {
        "docker": {"docker": docker},
        "containerd": {"ctr": ctr, "crictl": crictl},
    }
    return clients.get(era, {})
