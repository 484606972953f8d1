"""Restarts, rotations, stops, pauses and tokens: what is done, what clients then see, and the undo."""

import re
import time
from pathlib import Path
from typing import Any

import pytest
from support.lab_bench import IMAGE, LabBench, held
from support.raw_push import RawRegistry

from harness.errors import ConfigurationError, InfrastructureError, NothingThereError
from harness.faults.registry_actions import ACTIONS, registry_action
from harness.registry.images import ImageRecipe, make_image, sized_layers
from harness.registry.service import Restart
from harness.registry.wire import Login, Wire


def status_of(raw: RawRegistry) -> int:
    """Return how the registry answers to the beginning of an upload."""
    return raw.ask("POST", "/v2/a/b/blobs/uploads/", b"")[0]


def fresh(bench: LabBench) -> int:
    """Return how a client that gets a token now is answered."""
    tokens = bench.lab.tokens
    login = Login("sysinv", "lab-only", ca_file=bench.lab.authority.file)
    with Wire(bench.lab.endpoint, login) as wire, wire.get("/v2/a/b/tags/list", deadline=10) as answer:
        assert tokens.issued()
        return answer.status


@pytest.mark.parametrize(("name", "signal"), [("restart", "TERM"), ("restart-kill", "KILL")])
def test_a_restart_tells_both_processes_and_what_was_held(bench: LabBench, name: str, signal: str) -> None:
    client, action = bench.raw, registry_action(name)
    action.check(bench)
    action.prepare(bench)
    before = bench.registry.instance
    with held() as (gate, decided):
        said = action.fire(bench, gate)
        gate.release()
    after = bench.registry.instance
    assert before
    assert after
    assert re.fullmatch(
        rf"restarted the registry by {signal}: process {before.pid} gave way to {after.pid} after [0-9.]+ s "
        r"while PUT /v2/a/b/manifests/v1 \(connection 1\) was held",
        said,
    )
    assert [each.kind for each in decided] == ["release"]
    # The keys are the same: a token of before is still good.
    assert status_of(client) == 202
    action.undo(bench)
    assert bench.registry.instance == after, "there was nothing to undo"


@pytest.mark.parametrize(
    ("name", "old", "new", "undone"),
    [
        # 404: the repository has no tags; the token was good.
        ("rotate-keys", 401, 404, 404),
        ("rotate-keys-tokens-first", 401, 404, 404),
        ("rotate-keys-registry-only", 401, 401, 404),
        ("rotate-certificate", 202, 404, 404),
    ],
)
def test_a_token_of_before_a_rotation_is_lost(
    bench: LabBench, name: str, old: int, new: int, undone: int
) -> None:
    client, action = bench.raw, registry_action(name)
    certificate = (bench.lab.authority.file.parent / "registry.crt").read_bytes()
    assert (status_of(client), fresh(bench)) == (202, 404)
    starts = bench.lab.tokens.starts
    action.check(bench)
    said = action.fire(bench, None)
    assert f"gave way to {bench.registry.instance.pid}" in said  # type: ignore[union-attr]
    assert (bench.lab.authority.file.parent / "registry.crt").read_bytes() != certificate
    assert status_of(client) == old
    assert fresh(bench) == new
    for _ in range(2):
        action.undo(bench)
    assert fresh(bench) == undone
    assert bench.lab.tokens.starts == starts + (name != "rotate-certificate")


def test_the_second_field_report_s_order_is_registry_first(
    bench: LabBench, monkeypatch: pytest.MonkeyPatch
) -> None:
    happened: list[str] = []
    lab = bench.lab
    registry, tokens = lab.registry.restart, lab.tokens.restart

    def restart_registry(*how: Any, **more: Any) -> Restart:
        happened.append("registry")
        return registry(*how, **more)

    def restart_tokens() -> None:
        happened.append("tokens")
        tokens()

    monkeypatch.setattr(lab.registry, "restart", restart_registry)
    monkeypatch.setattr(lab.tokens, "restart", restart_tokens)
    registry_action("rotate-keys").fire(bench, None)
    registry_action("rotate-keys-tokens-first").fire(bench, None)
    assert happened == ["registry", "tokens", "tokens", "registry"]


def test_what_is_stopped_runs_again_after_the_undo(bench: LabBench) -> None:
    action = registry_action("stop")
    action.check(bench)
    assert "stopped the registry (process " in action.fire(bench, None)
    assert bench.registry.instance is None
    with pytest.raises(ConnectionRefusedError):
        status_of(bench.raw)
    action.undo(bench)
    action.undo(bench)
    assert status_of(bench.raw) == 202


def test_stopped_until_so_many_were_refused(bench: LabBench) -> None:
    action = registry_action("stop:3")
    action.check(bench)
    assert action.fire(bench, None).endswith("it starts again when 3 connections were refused")
    for _ in range(3):
        assert bench.registry.instance is None
        with pytest.raises(OSError, match=r"(?i)reset|eof|broken"):
            status_of(bench.raw)
    action._refusing._thread.join(30)  # type: ignore[attr-defined]
    bench.registry.wait_ready()
    assert status_of(bench.raw) == 202
    action.undo(bench)
    instance = bench.registry.instance
    assert instance
    assert instance.number == 2, "the undo found it running"


def test_a_stop_is_over_before_its_count(bench: LabBench) -> None:
    action = registry_action("stop:3")
    action.fire(bench, None)
    with pytest.raises(OSError, match=r"(?i)reset|eof|broken"):
        status_of(bench.raw)
    action.undo(bench)
    assert status_of(bench.raw) == 202


def state_of(bench: LabBench) -> str:
    instance = bench.registry.instance
    assert instance
    return Path(f"/proc/{instance.pid}/stat").read_text().rpartition(")")[2].split()[0]


def test_a_pause_ends_by_its_undo_or_by_itself(bench: LabBench) -> None:
    action = registry_action("pause")
    said = action.fire(bench, None)
    assert said == f"paused the registry (process {bench.registry.instance.pid})"  # type: ignore[union-attr]
    assert state_of(bench) == "T"
    action.undo(bench)
    action.undo(bench)
    assert status_of(bench.raw) == 202
    timed = registry_action("pause:0.3")
    began = time.monotonic()
    assert timed.fire(bench, None).endswith("for 0.3 s")
    assert status_of(bench.raw) == 202
    assert time.monotonic() - began >= 0.3, "answered once it goes on"
    timed.undo(bench)


def test_read_only_and_back(bench: LabBench) -> None:
    action = registry_action("read-only")
    assert action.fire(bench, None).startswith("made the registry read-only by TERM: process ")
    assert status_of(bench.raw) == 405
    action.undo(bench)
    restarts = len(bench.registry.restarts)
    action.undo(bench)
    assert (status_of(bench.raw), len(bench.registry.restarts)) == (202, restarts)


@pytest.mark.parametrize(("name", "heads"), [("collect-garbage", 200), ("collect-garbage-restart", 404)])
def test_garbage_collected_before_the_manifest(bench: LabBench, name: str, heads: int) -> None:
    # Fact sheet of the registry, section 5: while the registry runs on, its cache says that all is there.
    bench.raw.push("a/b", "v0", make_image(ImageRecipe(sized_layers(1, 2000, seed="kept"))))
    for blob in IMAGE.blobs():
        bench.raw.push_blob("a/b", blob)
    said = registry_action(name).fire(bench, None)
    assert said.startswith("collected garbage: 3 blobs deleted, exit code 0")
    assert ("gave way" in said) == (heads == 404)
    assert [bench.data(blob.digest).exists() for blob in IMAGE.blobs()] == [False] * 3
    assert [bench.raw.head(f"/v2/a/b/blobs/{blob.digest}") for blob in IMAGE.blobs()] == [heads] * 3


# -- tokens ---------------------------------------------------------------------------------------------


def test_tokens_expire_while_the_request_is_held(bench: LabBench) -> None:
    action = registry_action("expire-token:4")
    action.check(bench)
    lifetime = bench.lab.tokens.behaviour.lifetime
    action.prepare(bench)
    assert bench.lab.tokens.behaviour.lifetime == -56
    assert fresh(bench) == 404, "a token is good at first"
    issued = bench.lab.tokens.issued()[-1]
    client = RawRegistry(
        bench.lab.endpoint.url,
        bench.lab.authority.file,
        bench.lab.tokens.mint("sysinv", ["repository:a/b:pull,push"], exp=int(issued.expires)),
    )
    with held() as (gate, _):
        said = action.fire(bench, gate)
    assert said.startswith(f"waited until token {issued.token_id} was refused as expired while PUT ")
    assert status_of(client) == 401
    # One that renews its token gets a good one.
    assert bench.lab.tokens.behaviour.lifetime == lifetime
    assert fresh(bench) == 404
    action.undo(bench)


def test_without_a_token_none_expires(bench: LabBench) -> None:
    assert fresh(bench) == 404, "one of before the fault does not count"
    action = registry_action("expire-token")
    action.prepare(bench)
    with pytest.raises(NothingThereError, match="No token was issued yet"):
        action.fire(bench, None)
    action.undo(bench)
    assert bench.lab.tokens.behaviour.lifetime == 900


@pytest.mark.parametrize(("name", "status"), [("deny-token", 401), ("deny-token:403", 403)])
def test_tokens_are_refused_until_the_undo(bench: LabBench, name: str, status: int) -> None:
    action = registry_action(name)
    action.check(bench)
    assert f"deny {status}" in action.fire(bench, None)
    assert bench.lab.tokens.behaviour.deny == status
    with pytest.raises(InfrastructureError, match=f": {status}"):
        fresh(bench)
    for _ in range(2):
        action.undo(bench)
    assert fresh(bench) == 404


def test_tokens_come_late(bench: LabBench) -> None:
    action = registry_action("slow-token:0.2")
    assert "delay 0.2" in action.fire(bench, None)
    assert bench.lab.tokens.behaviour.delay == 0.2
    action.undo(bench)
    assert bench.lab.tokens.behaviour.delay == 0


# -- the held request alone ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "decision"),
    [
        ("reset", "reset"),
        ("cut", "cut"),
        ("delay:0.01", "released after 0.01 s"),
        *((f"answer-{status}", f"answered {status}") for status in (401, 403, 404, 429, 500, 503)),
    ],
)
def test_what_becomes_of_a_held_request(bench: LabBench, name: str, decision: str) -> None:
    action = registry_action(name)
    with held() as (gate, decided):
        said = action.fire(bench, gate)
    assert said.endswith("PUT /v2/a/b/manifests/v1 (connection 1)")
    (made,) = decided
    assert str(made) == decision
    assert ("Retry-After" in made.headers) == (name in ("answer-429", "answer-503"))
    action.undo(bench)
    with pytest.raises(ConfigurationError, match="No request is held"):
        action.fire(bench, None)


# -- names ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "hint"),
    [
        ("restrat", "Did you mean 'restart'?"),
        ("kill-at-open:manifest", "Did you mean 'kill-at-open:manifest-blob'?"),
        ("zzz", "Known: restart, restart-kill, rotate-keys"),
        ("restart:2", "Write 'restart'."),
        ("pause:", "Write 'pause', or pause:SECONDS."),
        ("pause:long", "Write it such as 2 or 0.5."),
        ("pause:-1", "Write it such as 2 or 0.5."),
        ("stop:nan", "Write it such as 2 or 0.5."),
        ("stop:0.5", "Leave it out, with the colon."),
        ("deny-token:0", "Leave it out, with the colon."),
        ("flip-blob:sha256:12", "Write it as sha256:HEX."),
        ("empty-tag-link:sha256:12", "Write 'empty-tag-link'."),
    ],
)
def test_an_illegal_name_is_told_with_what_was_meant(name: str, hint: str) -> None:
    with pytest.raises(ConfigurationError) as caught:
        registry_action(name)
    assert hint in caught.value.hint


def test_the_catalogue_tells_all_in_one_line_each() -> None:
    assert len(ACTIONS) == 35
    for name, about in ACTIONS.items():
        assert about
        assert "\n" not in about
        action = registry_action(name.partition("[")[0])
        assert (action.name, action.about) == (name.partition("[")[0], about)
        assert action is not registry_action(action.name)


def test_an_undo_without_a_fire_does_nothing(bench: LabBench) -> None:
    before = bench.registry.instance
    for name in ACTIONS:
        registry_action(name.partition("[")[0]).undo(bench)
    assert (bench.registry.instance, bench.registry.restarts) == (before, ())
    assert bench.lab.tokens.starts == 1
