"""A planted secret comes out of no field of any record, in none of its forms."""

import base64
import html
import json
import shlex
from collections.abc import Iterator
from dataclasses import fields
from pathlib import Path
from typing import Any
from urllib.parse import quote, quote_plus

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.judgement.records import (
    KINDS,
    Claim,
    Evidence,
    Intent,
    Promise,
    Record,
    ScenarioEnded,
    Subject,
)
from harness.judgement.values import Unknown
from harness.record import History, Redactor, read_history
from harness.record.redaction import MASK

CANARY = 'Kanarien"vogel/42+ ä&<%'

PEM = "-----BEGIN EC PRIVATE KEY-----\nMHcCAQEEIPlantedPlantedPlantedPlanted\n-----END EC PRIVATE KEY-----"


def encodings(secret: str) -> dict[str, str]:
    """The forms under which a secret turns up in logs, made with the standard library alone."""
    data = secret.encode()
    return {
        "raw": secret,
        "base64": base64.b64encode(data).decode(),
        "base64 of user:secret": base64.b64encode(b"sysadmin:" + data).decode(),
        "base64, shifted by one": base64.b64encode(b"sysinv:" + data + b"\n").decode(),
        "base64, shifted by two": base64.b64encode(b"admin: " + b"x" + data + b"\n").decode(),
        "base64url": base64.urlsafe_b64encode(data).decode(),
        "url": quote(secret, safe=""),
        "url, lower case": quote(secret, safe="").replace("%2F", "%2f").replace("%2B", "%2b"),
        "url with /": quote(secret),
        "form": quote_plus(secret),
        "json": json.dumps(secret),
        "json in json": json.dumps(json.dumps({"x": secret})),
        "json, utf-8": json.dumps(secret, ensure_ascii=False),
        "shell": shlex.quote(secret),
        "html": html.escape(secret),
    }


def leaves(text: str, secret: str = CANARY) -> list[str]:
    """Return which forms of a secret are still in a text, or any telling part of it."""
    found = [name for name, form in encodings(secret).items() if form in text]
    core = base64.b64encode(b"xx" + secret.encode()[1:]).decode()[4:-6]
    return (
        found
        + (["a base64 core"] if core in text else [])
        + (["its first word"] if "Kanarien" in text else [])
    )


@pytest.mark.parametrize("name", encodings(""))
def test_a_registered_secret_is_masked_in_every_form(name: str) -> None:
    redactor = Redactor()
    redactor.register(CANARY)
    masked = redactor.text(f"before {encodings(CANARY)[name]} after")
    assert leaves(masked) == []
    assert MASK in masked
    assert masked.startswith("before ")
    assert masked.endswith(" after")


def values_of(field_name: str, cls: type[Record], text: str) -> Any:
    """A value for a field of a record that holds ``text`` wherever a text can be."""
    subject = Subject("card", text, text, text, text)
    special: dict[str, Any] = {
        "subject": subject,
        "promise": Promise("unchanged", (text,), text),
        "evidence": Evidence(text, text, 1),
        "intent": 1,
        "step": 1,
        "within": None,
        "how": "returned" if cls.kind == "completion" else "finished",
        "state": "armed" if cls.kind == "fault" else text,
        "error": {"kind": text, text: text},
        "seq": 0,
        "time": 0.0,
        "source_time": None,
        "skew": None,
    }
    nested = {text: text, "list": [text, {"deep": text}], "unknown": Unknown(text), "number": 5}
    words = {"sources", "versions"}
    mapping = {"parameters", "statement", "values", "options", "expects", "arguments"}
    plain = {text: text} if field_name in words else text
    return special.get(field_name, nested if field_name in mapping else plain)


def planted(text: str) -> Iterator[Record]:
    """One record of every kind, with ``text`` in every field that can hold one."""
    for cls in KINDS.values():
        yield cls(**{f.name: values_of(f.name, cls, text) for f in fields(cls)})


@pytest.mark.parametrize("form", encodings(""))
def test_no_field_of_any_record_lets_it_out(tmp_path: Path, form: str) -> None:
    redactor = Redactor()
    redactor.register(CANARY)
    with History(tmp_path / "h.jsonl", redactor=redactor) as history:
        for record in planted(f"x {encodings(CANARY)[form]} y"):
            history.add(record)
        kept = [repr(record) for record in history.records]
    assert len(kept) == len(KINDS)
    lines = (tmp_path / "h.jsonl").read_text().splitlines()
    for text in (*kept, *lines, *(json.dumps(json.loads(line), ensure_ascii=False) for line in lines)):
        assert leaves(text) == []
        assert text.count(MASK) >= 1 or "run-ended" in text or "RunEnded" in text
    assert list(read_history(tmp_path / "h.jsonl")) == list(history.records)


def test_the_canaries_would_be_found() -> None:
    """Without redaction every kind that has a text field shows the planted secret."""
    shown = [record for record in planted(CANARY) if leaves(repr(record)) or leaves(json.dumps(CANARY))]
    assert len(shown) == len(KINDS)


@pytest.mark.parametrize(
    ("text", "secret"),
    [
        (PEM, "MHcCAQEEIPlanted"),
        (PEM.replace("EC ", "OPENSSH "), "MHcCAQEEIPlanted"),
        (PEM.replace("\n", "\\n"), "MHcCAQEEIPlanted"),
        (PEM[:60], "MHcCAQEEIPl"),
        ("Authorization: Basic c3lzYWRtaW46Ym9v", "c3lzYWRtaW46Ym9v"),
        ("{'Authorization': 'Bearer abc.def-123456'}", "abc.def-123456"),
        ('{"authorization": "Basic c3lzYWRtaW46Ym9v"}', "c3lzYWRtaW46Ym9v"),
        ("curl -H 'X-Auth-Token: gAbCdEf12345' http://h/", "gAbCdEf12345"),
        ("Set-Cookie: session=0123456789", "0123456789"),
        ("password=boo", "boo"),
        ("OS_PASSWORD='boo hoo' next", "boo hoo"),
        ('OS_PASSWORD="boo hoo" next', "boo hoo"),
        ("export REGISTRY_PASSWD=boo", "boo"),
        ("password: boo", "boo"),
        ('{"password": "b\\"oo"}', "oo"),
        ('{\\"password\\": \\"boohoo\\"}', "boohoo"),
        ("{u'password': u'boo', u'user': u'me'}", "boo"),
        ('{"auth": "c3lzYWRtaW46Ym9v"}', "c3lzYWRtaW46Ym9v"),
        ("docker login --username me --password boo registry", "boo"),
        ("sshpass -p boo ssh host", "boo"),
        ("https://sysadmin:boo@registry.local:9001/v2/", "boo"),
        ("token=abcdef&service=x", "abcdef"),
        ('{"access_token":"abcdef"}', "abcdef"),
        ("eyJhbGciOiJSUzI1NiJ9.eyJzdWIiOiJ4In0.c2lnbmF0dXJl", "eyJzdWIiOiJ4In0"),
        ("id gAAAAABlAbCdEfGhIjKlMnOpQrStUvWxYz0123456789-_ end", "AbCdEfGhIjKl"),
        ("ghp_0123456789abcdefghijABCDEFGHIJ012345", "0123456789abcdef"),
        ("AKIAIOSFODNN7EXAMPLE", "IOSFODNN7"),
    ],
)
def test_what_looks_like_a_secret_is_masked(text: str, secret: str) -> None:
    masked = Redactor().text(text)
    assert secret not in masked
    assert MASK in masked


@pytest.mark.parametrize(
    "text",
    [
        "[2026-11-30 09:33:50.00] [INFO    ] Secure update OK",
        "programming:hw-error",
        "RSU auth result: 0x00000011",
        "BMC root entry hash: 0x77698ea203e459f6cb0e65b54a1dd4ab47a6a6600e7988f723ad89f5b7f3673a",
        "error authorizing context: invalid token",
        "token not to be used before 2026-11-30 09:33:50",
        "token signed by untrusted key with ID: ABCD",
        "FIM CSK IDs canceled: None",
        "/sys/bus/pci/devices/0000:b2:00.0/fpga_region/region0/dfl-fme.0/bitstream_id",
        "key-cancellation, root-key-A, sysadmin@controller-0:~$",
        "-----BEGIN PUBLIC KEY-----\nMFkw\n-----END PUBLIC KEY-----",
        "http://controller:8080/device_images/a.bin",
    ],
)
def test_evidence_without_a_secret_is_left_alone(text: str) -> None:
    assert Redactor().text(text) == text


@pytest.mark.parametrize("key", ["password", "OS_PASSWORD", "auth_token", "private-key", "secret", "api_key"])
def test_the_whole_value_of_a_key_that_names_a_secret_is_masked(key: str) -> None:
    assert Redactor().json({key: "boo", "image": {key: 12345}}) == {key: MASK, "image": {key: MASK}}


@pytest.mark.parametrize("key", ["root-key", "irreversible", "auth_code", "csk_id", "tokens_seen"])
def test_keys_of_statements_are_no_secrets(key: str) -> None:
    assert Redactor().json({key: "0x11"}) == {key: "0x11"}


def test_a_secret_that_is_a_word_of_the_records_does_not_break_them(tmp_path: Path) -> None:
    redactor = Redactor()
    for word in ("card", "unchanged", "intent", "interrupted"):
        redactor.register(word)
    with History(tmp_path / "h.jsonl", redactor=redactor) as history:
        card = Subject("card", "the card of a")
        history.add(Intent(operation="flash", subject=card, promise=Promise("unchanged", source="card")))
        history.add(ScenarioEnded(scenario="s", state="interrupted", reason="interrupted by intent"))
    intent, ended = read_history(tmp_path / "h.jsonl")
    assert isinstance(intent, Intent)
    assert intent.promise is not None
    assert (intent.subject.kind, intent.promise.effect) == ("card", "unchanged")
    assert (intent.subject.name, intent.promise.source) == (f"the {MASK} of a", MASK)
    assert isinstance(ended, ScenarioEnded)
    assert (ended.state, ended.reason) == ("interrupted", f"{MASK} by {MASK}")


def test_a_short_secret_is_masked_where_it_stands_alone() -> None:
    redactor = Redactor()
    redactor.register("boo")
    assert redactor.text("boo taboo boo.") == f"{MASK} taboo {MASK}."


def test_an_empty_secret_is_none() -> None:
    redactor = Redactor()
    redactor.register("")
    redactor.register(" \n")
    assert redactor.text("a b\n c") == "a b\n c"


def test_each_long_line_of_a_key_file_is_masked_on_its_own() -> None:
    redactor = Redactor()
    redactor.register(PEM)
    assert "Planted" not in redactor.text("found MHcCAQEEIPlantedPlantedPlantedPlanted in the log")


@given(st.text(max_size=200), st.text(min_size=6, max_size=30).filter(lambda text: not {*"[]"} & {*text}))
def test_masking_is_idempotent_and_leaves_no_secret(text: str, secret: str) -> None:
    redactor = Redactor()
    redactor.register(secret)
    once = redactor.text(text + secret + text)
    assert redactor.text(once) == once


@given(
    st.text(alphabet="abcdefghijklmnop0123456789+/=_-&?: \"'\\\n", min_size=8, max_size=40).filter(str.strip)
)
def test_no_form_of_any_secret_survives(secret: str) -> None:
    redactor = Redactor()
    redactor.register(secret)
    for name, form in encodings(secret).items():
        assert form not in redactor.text(f"<{form}>"), name


def test_a_text_that_was_clean_is_masked_once_its_secret_is_known() -> None:
    redactor = Redactor()
    said = f"the word is {CANARY}"
    assert redactor.text(said) == said
    redactor.register(CANARY)
    assert CANARY not in redactor.text(said)


def test_long_evidence_is_masked_in_linear_time() -> None:
    """Texts that make a careless pattern try every start and every end."""
    import time

    redactor = Redactor()
    for piece in (
        "a_",
        "-----BEGIN PRIVATE KEY-----",
        "password",
        "eyJ-",
        "x://",
        "token='",
        "Authorization: ",
    ):
        begun = time.process_time()
        redactor.text(piece * (200_000 // len(piece)))
        assert time.process_time() - begun < 5, piece


def test_claims_keep_everything_else(tmp_path: Path) -> None:
    redactor = Redactor()
    redactor.register(CANARY)
    with History(tmp_path / "h.jsonl", redactor=redactor) as history:
        kept = history.add(
            Claim(
                reporter="fpgasupdate",
                subject=Subject("card", "a/card0"),
                statement={"result": "done"},
                evidence=Evidence(f"logged in with {CANARY}\nSecure update OK", exit_code=0),
            )
        )
    assert kept.evidence == Evidence(f"logged in with {MASK}\nSecure update OK", exit_code=0)


def test_what_a_block_registers_is_forgotten_at_its_end() -> None:
    redactor = Redactor()
    redactor.register(CANARY)
    with redactor.forgetting():
        redactor.register("x")
        assert redactor.text("name=x") == f"name={MASK}"
    assert redactor.text("name=x") == "name=x"
    assert redactor.text(CANARY) == MASK
