"""Push and pull by the Docker SDK for Python, with three ways to tell whether a push succeeded."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from harness.registry.clients.engine_images import (
    CACHED,
    EngineImages,
    engine_of,
    left_as_found,
    sdk_failures,
)
from harness.registry.clients.engine_waits import seconds_waited
from harness.registry.clients.protocol import Destination, PullClient, PushClient, Report, Result

if TYPE_CHECKING:
    from docker import APIClient, DockerClient
    from requests import Response

    from harness.registry.clients.catalogue import Surroundings
    from harness.registry.engine import Engine
    from harness.registry.images import Content

#: The SDK's own: seconds without a byte from the engine after which it gives up.
SDK_TIMEOUT = 60.0
#: The engine's silence is not to be taken for the deadline, nor the other way round.
_MARGIN = 0.1


class Refusal(Exception):
    """The client's own judgement that its push or pull failed."""


class Session:
    """One conversation with the engine, which ends at a deadline however much the engine says.

    ``timeout``: the SDK's; it counts from byte to byte and bounds no whole push.
    """

    def __init__(self, engine: Engine, *, deadline: float, timeout: float = SDK_TIMEOUT) -> None:
        self._timeout = timeout
        self._end = time.monotonic() + deadline
        #: What was said so far, verbatim.
        self.heard: list[str] = []
        #: What the statement rests on, where that is not the usual.
        self.basis = ""
        self._client = engine.client(timeout=min(timeout, deadline))
        self._response: Response | None = None
        self._lock = threading.Lock()
        self._client.api.hooks["response"].append(self._note)
        self._timer = threading.Timer(deadline, self.cut)
        self._timer.daemon = True
        self._timer.start()

    def __enter__(self) -> Session:
        return self

    def __exit__(self, *exception: object) -> None:
        self._timer.cancel()
        self._timer.join()
        self._client.close()

    @property
    def expired(self) -> bool:
        """Whether the deadline has passed."""
        return time.monotonic() >= self._end

    @property
    def client(self) -> DockerClient:
        """The SDK's client, for one more request: it may take until the deadline."""
        left = self._end - time.monotonic()
        vars(self._client.api)["timeout"] = min(self._timeout, max(0.0, left) + _MARGIN)
        return self._client

    @property
    def api(self) -> APIClient:
        """The same, by the SDK's lower level."""
        return self.client.api

    def _note(self, response: Response, **_: object) -> None:
        """Keep an answer whose body is still to come; the SDK reads it in its own loops."""
        with self._lock:
            self._response = response
        if self.expired:
            self.cut()

    def cut(self) -> None:
        """Let the deadline be now: the answer that is being read ends as if the engine had ended."""
        self._end = min(self._end, time.monotonic())
        with self._lock, suppress(RuntimeError, ValueError, OSError):  # it is complete already
            if self._response is not None:
                self._response.raw.shutdown()


def credentials(destination: Destination) -> dict[str, str]:
    """Return the login as the SDK takes it. Empty, it keeps the SDK from looking for one of the user's."""
    if not destination.user:
        return {}
    return {"username": destination.user, "password": destination.password}


def trust(engine: Engine, destination: Destination) -> None:
    """Have the engine check the registry's certificate, where one is stated; raises as the engine does."""
    if destination.ca_file is not None and not destination.plain:
        engine.trust(destination.reference.registry, destination.ca_file)


def report_of(engine: Engine, act: Callable[[Session], str], *, deadline: float, timeout: float) -> Report:
    """Return the report of ``act``, which does a push or pull and returns the digest that it is told.

    It fails by a :class:`Refusal`, or by what the SDK raises.
    """
    began = time.monotonic()
    result: Result = "done"
    heard, digest, reason, basis = [""], "", "", ""
    try:
        with Session(engine, deadline=deadline, timeout=timeout) as session:
            heard = session.heard
            digest = act(session)
            basis = session.basis
    except Refusal as refusal:
        result, reason = "failed", str(refusal)
    except sdk_failures() as error:
        late = time.monotonic() - began >= deadline
        result, reason = ("interrupted", f"not done after {deadline:g} s") if late else ("failed", str(error))
        heard.append(f"{type(error).__module__}.{type(error).__qualname__}: {error}\n")
    took = time.monotonic() - began
    text = "".join(heard)
    waited = min(took, seconds_waited(text))
    return Report(result, text, digest=digest, error=reason, basis=basis, seconds=took, waited=waited)


# -- push ---------------------------------------------------------------------------------------------

#: Pushes a tag with a login, and returns the digest that it is told.
_Way = Callable[[Session, str, dict[str, str]], str]


def push_and_drop(session: Session, tag: str, login: dict[str, str]) -> str:
    """Push and ask nothing: without an exception it is done. What was returned is kept as evidence only."""
    session.heard.append(str(session.api.push(tag, auth_config=login)))
    return ""


def push_and_read(session: Session, tag: str, login: dict[str, str]) -> str:
    """Push and read what the engine says to its end: no error, and the digest at last.

    :raises Refusal: the engine states an error, or no digest.
    """
    for chunk in session.api.push(tag, stream=True, auth_config=login):
        session.heard.append(chunk.decode(errors="replace"))
    digest = ""
    for line in _documents("".join(session.heard)):
        if "errorDetail" in line or "error" in line:
            raise Refusal((line.get("errorDetail") or {}).get("message") or line.get("error") or "no reason")
        digest = (line.get("aux") or {}).get("Digest") or digest
    if not digest:
        raise Refusal("the engine ended without stating a digest")
    return str(digest)


def push_and_inspect(session: Session, tag: str, login: dict[str, str]) -> str:
    """Push and ask nothing, then have the registry asked for the tag: StarlingX's remedy.

    What it finds may be an older image under the same tag (fact sheet of StarlingX, section 7.2).
    """
    push_and_drop(session, tag, login)
    return ask_registry(session, tag, login)


def ask_registry(session: Session, tag: str, login: dict[str, str]) -> str:
    """Return the digest that the registry has under ``tag``. :raises Refusal: it states none."""
    answer: dict[str, Any] = session.api.inspect_distribution(  # type: ignore[no-untyped-call]  # by the stubs, it has no types
        tag, auth_config=login
    )
    session.heard.append(json.dumps(answer) + "\n")
    digest = str((answer.get("Descriptor") or {}).get("digest", ""))
    if not digest:
        raise Refusal("the registry stated no digest")
    return digest


def _documents(text: str) -> Iterator[dict[str, Any]]:
    """Yield the JSON objects in the engine's answer, one a line."""
    for line in text.splitlines():
        with suppress(ValueError):
            found = json.loads(line)
            if isinstance(found, dict):
                yield found


class _SdkPush:
    """Pushes one way."""

    def __init__(self, name: str, way: _Way, surroundings: Surroundings, timeout: float) -> None:
        self._name = name
        self._way = way
        self._engine = engine_of(surroundings, name)
        self._images = EngineImages(self._engine, surroundings.folder)
        self._timeout = timeout

    @property
    def name(self) -> str:
        return self._name

    @property
    def version(self) -> str:
        return sdk_version(self._engine)

    def prepare(self, content: Content, destination: Destination) -> None:
        trust(self._engine, destination)
        self._images.load(content, destination.reference)

    def push(self, content: Content, destination: Destination, *, deadline: float = 120.0) -> Report:
        tag, login = str(destination.reference), credentials(destination)
        return report_of(
            self._engine,
            lambda session: self._way(session, tag, login),
            deadline=deadline,
            timeout=self._timeout,
        )

    def forget(self, content: Content, destination: Destination) -> None:
        self._images.forget(content, destination.reference)

    def close(self) -> None:
        self._images.close()


def sdk_version(engine: Engine) -> str:
    """Return the versions of the SDK and of the engine behind it."""
    import docker

    return f"docker {docker.__version__}, engine {engine.version}"


def naive(surroundings: Surroundings, *, timeout: float = SDK_TIMEOUT) -> PushClient:
    """Return the client that drops the result of ``push()``. :raises BlockedError: no engine runs."""
    return _SdkPush("docker-naive", push_and_drop, surroundings, timeout)


def stream(surroundings: Surroundings, *, timeout: float = SDK_TIMEOUT) -> PushClient:
    """Return the client that reads the stream to its end. :raises BlockedError: no engine runs."""
    return _SdkPush("docker-stream", push_and_read, surroundings, timeout)


def inspect(surroundings: Surroundings, *, timeout: float = SDK_TIMEOUT) -> PushClient:
    """Return the client that inspects afterwards. :raises BlockedError: no engine runs."""
    return _SdkPush("docker-inspect", push_and_inspect, surroundings, timeout)


# -- pull ---------------------------------------------------------------------------------------------


class _SdkPull:
    """Pulls by ``images.pull``, which drops what the engine says and looks for the image afterwards."""

    name = "docker-pull"

    def __init__(self, surroundings: Surroundings, timeout: float) -> None:
        self._engine = engine_of(surroundings, self.name)
        self._timeout = timeout

    def pull(self, source: Destination, *, deadline: float = 120.0) -> Report:
        trust(self._engine, source)
        return report_of(
            self._engine,
            lambda session: self._pull(session, source),
            deadline=deadline,
            timeout=self._timeout,
        )

    def _pull(self, session: Session, source: Destination) -> str:
        reference = source.reference
        repository = f"{reference.registry}/{reference.repository}"
        with left_as_found(self._engine, str(reference)) as cached:
            image = session.client.images.pull(
                repository, tag=reference.wanted, auth_config=credentials(source)
            )
            session.heard.append(f"{image.id}\n")
            session.basis = CACHED if cached() else ""
            named = image.attrs.get("RepoDigests") or ()
            return next((each.rpartition("@")[2] for each in named if each.startswith(f"{repository}@")), "")

    def close(self) -> None:
        """It holds nothing."""


def pull(surroundings: Surroundings, *, timeout: float = SDK_TIMEOUT) -> PullClient:
    """Return the client that pulls by the SDK. :raises BlockedError: no engine runs."""
    return _SdkPull(surroundings, timeout)
