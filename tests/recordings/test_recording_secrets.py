"""A recording leaves the lab: no planted secret is in it, and no real MAC address where so asked."""

from __future__ import annotations

import base64
import html
import json
import shlex
from dataclasses import replace
from typing import Any
from urllib.parse import quote

import pytest
from support.cards import FileCard, Programs

from harness.cards.discovery import discover
from harness.hosts.ssh import SshHost
from harness.inventory.model import Card
from harness.record.redaction import MASK, Redactor
from harness.recordings.files import dumps
from harness.recordings.model import Act, Entry, Output, Piece, RecordedCard, Recording, State
from harness.recordings.rewriting import rewritten, with_pseudonyms, without_secrets
from harness.recordings.session import Session

CANARY = 'Kanarien"vogel/42+ ä&<%'
MAC = "64:4c:36:00:88:00"
#: The spellings in which lspci, the configuration space and the kernel have a MAC address.
SPELLINGS = {
    "colons": "64:4c:36:00:88:00",
    "upper": "64:4C:36:00:88:00",
    "dashes": "64-4c-36-00-88-00",
    "plain": "644c36008800",
    "plain upper": "644C36008800",
    "serial number": "64-4c-36-ff-ff-00-88-00",
    "eui-64": "64:4c:36:ff:fe:00:88:00",
}


def encodings(secret: str) -> dict[str, str]:
    data = secret.encode()
    return {
        "raw": secret,
        "base64": base64.b64encode(data).decode(),
        "base64 of user:secret": base64.b64encode(b"sysadmin:" + data).decode(),
        "url": quote(secret, safe=""),
        "json": json.dumps(secret),
        "shell": shlex.quote(secret),
        "html": html.escape(secret),
    }


def planted(tiny: Recording, text: str) -> Recording:
    """A recording with ``text`` wherever a text can be."""

    def in_act(act: Act) -> Act:
        return replace(
            act,
            argv=(*act.argv, f"--x={text}"),
            output=(*act.output, Piece(9.0, "stdout", f"says {text}\n")),
            samples=tuple(
                replace(s, values={"status": Entry("content", f"{text}\n".encode())}) for s in act.samples
            ),
        )

    path = {f"/sys/a/{text}": Entry("content")} if not {"/", "\0"} & {*text} else {}
    tree: dict[str, Entry | None] = {
        **path,
        "/sys/a/f": Entry("content", f"file {text}\n".encode()),
        "/sys/a/l": Entry("link", text=f"../{text}"),
        "/sys/a/o": Entry("left-out", text=text),
        "/sys/a/b": Entry("content", b"\xff\x00" + text.encode() + b"\xff"),
    }
    commands: dict[str, Output | None] = {shlex.join(["tool", text]): Output(0, f"{text}\n", f"oh {text}\n")}
    first = tiny.states[0]
    state = State(first.when, first.addresses, {**first.tree, **tree}, {**first.commands, **commands})
    host = {**tiny.host, "hostname": f"host-{text}"}
    return replace(tiny, host=host, states=(state, *tiny.states[1:]), acts=tuple(map(in_act, tiny.acts)))


def everything(recording: Recording) -> str:
    """All texts and bytes of a recording in one text."""
    found = [dumps(recording), json.dumps(recording.to_json(), ensure_ascii=True)]
    blobs: list[bytes] = []
    rewritten(recording, lambda text: (found.append(text), text)[1], lambda b: (blobs.append(b), b)[1])  # type: ignore[func-returns-value]
    return "\n".join([*found, *(blob.decode("latin-1") for blob in blobs)])


@pytest.mark.parametrize("form", encodings(""))
@pytest.mark.parametrize("canary", [CANARY, "Kanarienvogel-42"])
def test_a_planted_secret_comes_out_nowhere(tiny: Recording, form: str, canary: str) -> None:
    text = encodings(canary)[form]
    redactor = Redactor()
    redactor.register(canary)
    assert "Kanarien" in everything(planted(tiny, canary))
    masked = everything(without_secrets(planted(tiny, text), redactor))
    for spelled in encodings(canary).values():
        assert spelled not in masked
    assert "Kanarien" not in masked
    assert masked.count(MASK) > 8


def test_what_looks_like_a_secret_is_masked_without_being_registered(tiny: Recording) -> None:
    for secret in ("password=hunter2boo", "Authorization: Bearer abc.def-123456"):
        masked = everything(without_secrets(planted(tiny, secret), Redactor()))
        assert "hunter2boo" not in masked
        assert "abc.def-123456" not in masked


def test_what_holds_no_secret_is_left_as_it_is(tiny: Recording, flashed: Any) -> None:
    assert without_secrets(tiny, Redactor()) == tiny
    assert without_secrets(flashed[0], Redactor()) == flashed[0]


def test_the_password_of_a_host_is_in_no_recording_of_it(
    access: Any, programs: Programs, file_card: FileCard
) -> None:
    """Registered where credentials are resolved, planted where a careless tool may print it."""
    from harness.record.redaction import REDACTOR, register_secret

    secret = "canary-of-this-test-0815"
    register_secret(secret)
    programs.say("security", f"ssh sysadmin with {secret}\n")
    file_card.write("uevent", f"DRIVER=dfl-pci\nNOTE={base64.b64encode(secret.encode()).decode()}\n")
    file_card.write("blob", f"\udcff{secret}".encode("utf-8", "surrogateescape").decode("latin-1"))
    host = SshHost("bench", access, tools=programs.tools)
    try:
        card = Card(name="card0", address=file_card.address, identity="64:4c:36:00:12:a0")
        session = Session(host, [card], sysfs=str(file_card.sysfs))
        session.begin()
        assert secret in everything(session.recording(redactor=Redactor()))
        text = everything(session.recording())
    finally:
        host.close()
    assert secret not in text
    assert base64.b64encode(secret.encode()).decode() not in text
    assert MASK in text
    assert REDACTOR.text(secret) == MASK


@pytest.mark.parametrize("spelling", SPELLINGS)
def test_a_mac_address_is_replaced_in_every_spelling(tiny: Recording, spelling: str) -> None:
    told = planted(tiny, f"<{SPELLINGS[spelling]}>")
    changed = with_pseudonyms(told)
    text = everything(changed)
    for spelled in SPELLINGS.values():
        assert spelled not in text
    assert changed.made["macs"] == "pseudonyms"
    identity = changed.cards[0].identity
    assert identity is not None
    assert int(identity[:2], 16) & 2  # locally administered: nobody's real address
    assert everything(with_pseudonyms(changed)).count(identity) == text.count(identity)


def test_bytes_of_a_mac_address_are_replaced_in_either_order(tiny: Recording) -> None:
    octets = bytes.fromhex(MAC.replace(":", ""))
    serial = (octets[:3] + b"\xff\xff" + octets[3:])[::-1]  # as the configuration space has it
    content = b"\xfe" + octets + b"\xfe" + octets[::-1] + b"\xfe" + serial
    told = replace(
        tiny, states=(replace(tiny.states[0], tree={"/c": Entry("content", content)}), *tiny.states[1:])
    )
    changed = with_pseudonyms(told).tree(0)["/c"].data
    assert len(changed) == len(content)
    assert octets not in changed
    assert octets[::-1] not in changed
    assert serial not in changed


def test_the_same_address_has_the_same_pseudonym_and_its_followers_follow(tiny: Recording) -> None:
    text = (
        "a 64:4c:36:00:88:00 b 64:4c:36:00:88:03 c 3c:fd:fe:01:02:03 d 64:4C:36:00:88:00 e ff:ff:ff:ff:ff:ff"
    )
    told = replace(tiny, states=(replace(tiny.states[0], commands={"x": Output(0, text)}), *tiny.states[1:]))
    changed = with_pseudonyms(told)
    words = changed.commands(0)["x"].stdout.split()[1::2]
    own, third, other, again, broadcast = words
    assert own == again.lower() == changed.cards[0].identity
    assert again == again.upper()
    assert int(third.replace(":", ""), 16) == int(own.replace(":", ""), 16) + 3
    assert len({own, third, other}) == 3
    assert broadcast == "ff:ff:ff:ff:ff:ff"


def test_without_a_mac_address_nothing_changes(tiny: Recording) -> None:
    bare = replace(tiny, cards=(RecordedCard("card0", "0000:b2:00.0", None),))
    assert with_pseudonyms(bare) == bare


def test_a_replay_with_pseudonyms_is_the_same_card_under_another_name(
    original: Any, as_found: Any, replay: Any, reach: Any
) -> None:
    replayed = replay(as_found("node1", "card0", pseudonyms=True))
    real, truth = reach(original, "node1").truth().values(), replayed.truth().values()
    assert {name for name in truth if truth[name] != real[name]} == {"identity"}
    found = discover(replayed.host)
    assert [card.identity for card in found] == [truth["identity"]]
    assert replayed.driver().locate() == "0000:b2:00.0"
