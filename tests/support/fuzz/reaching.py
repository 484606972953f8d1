"""What reaches a host: documents of its Redfish controller, files of known hosts, what a command says."""

from __future__ import annotations

import json
from collections.abc import Sequence

from support.fuzz.engine import Target
from support.fuzz.mutate import JsonMutator, TextMutator

from harness.errors import HarnessError
from harness.hosts.known_hosts import HostKey, keys_of, revoked, with_keys
from harness.lab.power.commands import reading
from harness.lab.power.redfish_forms import only_member, system_of, told

_NAME = "[10.10.7.3]:2222"
_KEY = HostKey("ssh-ed25519", "AAAAC3NzaC1lZDI1NTE5AAAAIFm4p3Hk8nT7cQe3fYV9m1oGzj5nZ0Y2kq7r3b8d6wXs")
_OTHER = HostKey("ssh-rsa", "AAAAB3NzaC1yc2EAAAADAQABAAAAQQC7")


def _redfish() -> Sequence[bytes]:
    action = {
        "target": "/redfish/v1/Systems/1/Reset",
        "ResetType@Redfish.AllowableValues": ["On", "ForceOff"],
    }
    info = [{"MessageId": "Base.1.18.ActionParameterMissing", "Message": "It is missing."}]
    documents = (
        {"PowerState": "On", "Actions": {"#ComputerSystem.Reset": action}},
        {"Members@odata.count": 1, "Members": [{"@odata.id": "/redfish/v1/Systems/1"}]},
        {"error": {"code": "c", "message": "General.", "@Message.ExtendedInfo": info}},
    )
    return [json.dumps(document).encode() for document in documents]


def _read_redfish(data: bytes) -> str:
    said = told(500, data)
    assert said.startswith("500: ") and len(said) <= 310
    try:
        system = system_of(data)
        assert system.power.state in ("on", "off", None)
        assert system.target == "" or (system.target[0] == "/" and system.target[:2] != "//")
        kind = system.reset_type("off")
        assert kind == "ForceOff"
        return f"a computer that is {system.power.state}"
    except HarnessError:
        pass
    try:
        path = only_member(data)
    except HarnessError:
        return "refused"
    assert path.startswith("/") and not path.startswith("//")
    return "a collection"


def _known() -> Sequence[bytes]:
    text = with_keys(f"# mine\n@revoked * {_OTHER.kind} {_OTHER.content}\n", _NAME, [_KEY, _OTHER])
    hashed = with_keys("|1|c2FsdA==|ZGlnZXN0 ssh-rsa AAAA\n", _NAME, [_KEY])
    return [text.encode(), hashed.encode(), f"a,{_NAME},b {_KEY.kind} {_KEY.content} c\n".encode()]


def _read_known(data: bytes) -> str:
    text = data.decode(errors="surrogateescape")
    before = keys_of(text, _NAME)
    revoked(text)
    made = with_keys(text, _NAME, [_KEY])
    assert [key for key in keys_of(made, _NAME) if key.kind == _KEY.kind] == [_KEY]
    assert [key for key in keys_of(made, _NAME) if key.kind != _KEY.kind] == [
        key for key in before if key.kind != _KEY.kind
    ]
    assert with_keys(made, _NAME, [_KEY]).count("\n") == made.count("\n")
    return f"{len(before)} keys"


def _read_status(data: bytes) -> str:
    seen = reading(data.decode(errors="replace"))
    assert seen.state in ("on", "off", None) and len(seen.said) <= 200
    return str(seen.state)


TARGETS = (
    Target("redfish", _redfish, _read_redfish, lambda: JsonMutator(["//", "/", "On", "Off", "ForceOff"])),
    Target("known-hosts", _known, _read_known, lambda: TextMutator(["|1|", "@revoked", ",", _NAME])),
    Target(
        "power-status",
        lambda: [b"Chassis Power is on\n", b"Chassis Power is off\n"],
        _read_status,
        lambda: TextMutator(["on", "off", ".", "\n"]),
    ),
)
