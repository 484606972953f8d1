"""Known defects of cards, tools, registries and push clients: what each does, and what detects it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any, Final, Literal

Kind = Literal["system", "cloud", "card", "tool", "registry", "client"]


@dataclass(frozen=True, slots=True)
class KnownDefect:
    """One defect. ``kind``: of what.

    ``reference``: a bug number, a commit, or a section of a fact sheet. ``claims``: what it makes whom say.
    ``predicts``: the outcome or verdict that detects it; anything else, INFRA and BLOCKED above all, does
    not count. ``releases``: of StarlingX that have it. ``switch``: how an emulated lab is given it.
    ``beside``: defects without which it cannot show. ``generation``: of the driver that has it; empty: any.
    """

    name: str
    kind: Kind
    reference: str
    claims: str
    predicts: str
    releases: tuple[str, ...] = ()
    switch: Any = None
    beside: tuple[str, ...] = ()
    generation: str = ""


@dataclass(frozen=True, slots=True)
class Struck:
    """What a defective registry does to every push: ``action`` at ``point``."""

    point: str
    action: str


#: Check of the card -> what an image may then have (fact sheet of the N3000, section 3.3).
_UNCHECKED: Final = {
    "b0-magic": "another magic of Block 0",
    "content-length": "a length that is no multiple of 128",
    "content-type": "a content type that there is not",
    "b1-magic": "another magic of Block 1",
    "operation": "a certificate type that there is not",
    "root-already-programmed": "a second root entry hash",
    "root-key-payload-hash": "a root entry hash that is not the one in its header's digest",
    "root-not-programmed": "a cancellation on a card without a root entry hash",
    "root-magic": "another magic of its root entry",
    "root-curve": "a root key on a curve that there is not",
    "root-permission": "a root key without permissions",
    "root-key-id": "a root key with a key id",
    "root-hash": "a root key of somebody else, or none",
    "csk-magic": "another magic of its CSK",
    "csk-curve": "a CSK on a curve that there is not",
    "csk-permission": "a CSK that may not sign user images",
    "csk-signature-magic": "another magic of the signature over its CSK",
    "csk-id-range": "a CSK id of more than 127",
    "csk-cancelled": "a CSK that is cancelled",
    "csk-signature": "a CSK that the root has not signed",
    "b0-entry-magic": "another magic of the entry of Block 0",
    "b0-entry-signature-magic": "another magic of the signature over Block 0",
    "b0-signature": "a Block 0 that the CSK has not signed",
    "payload-hash": "a payload that is not the one in its header's digest",
    "cancellation-payload-hash": "a cancellation that is not the one in its header's digest",
    "cancellation-id": "a CSK id of more than 127 to cancel",
}
#: What an image does that no document knows cannot be seen: only that the tool says OK of it.
_NOTHING_SHOWS: Final = ("b0-magic", "content-length", "content-type", "operation", "cancellation-id")
#: Refused all the same, by a later check and with its code.
_REFUSED_BY_ANOTHER: Final = ("root-not-programmed",)


def _unchecked(check: str, what: str) -> KnownDefect:
    claims, predicts = f"the card takes {what}, and fpgasupdate says OK", "BREACH"
    if check in _NOTHING_SHOWS:
        predicts = "FALSE_SUCCESS"
    elif check in _REFUSED_BY_ANOTHER:
        claims, predicts = f"the card refuses {what} for another reason than that", "FAILED"
    return KnownDefect(
        f"{check}-not-checked",
        "card",
        "Intel UG 683519 (policy); fact sheet of the N3000, section 3.3 (codes)",
        claims,
        predicts,
        switch={"disabled_checks": check},
    )


def _flaw(name: str, reference: str, claims: str, predicts: str) -> KnownDefect:
    return KnownDefect(name, "card", reference, claims, predicts, switch={"flaws": name})


_N3000: Final = "fact sheet of the N3000, section"
_FLAWS: Final = (
    _flaw(
        "copy-dropped",
        f"{_N3000} 4.4",
        "fpgasupdate says OK, and the card runs the old image",
        "FALSE_SUCCESS",
    ),
    _flaw(
        "copy-cut-short",
        f"{_N3000} 4.4; Xilinx/XRT PR#3118",
        "fpgasupdate says OK of half an image",
        "FALSE_SUCCESS",
    ),
    _flaw(
        "refused-image-copied",
        "reports F28",
        "fpgasupdate says that the card refused what it runs",
        "FALSE_FAILURE",
    ),
    _flaw(
        "factory-page-booted",
        "OFS/opae-sdk PR#2158",
        "fpgasupdate says OK, and the factory image runs",
        "FALSE_SUCCESS",
    ),
    _flaw(
        "root-key-dropped",
        f"{_N3000} 3.1",
        "fpgasupdate says OK, and no root key is programmed",
        "FALSE_SUCCESS",
    ),
    _flaw(
        "cancellation-dropped",
        f"{_N3000} 3.1",
        "fpgasupdate says OK, and no CSK is cancelled",
        "FALSE_SUCCESS",
    ),
    _flaw(
        "next-csk-cancelled",
        f"{_N3000} 3.1",
        "fpgasupdate says OK, and another CSK is cancelled",
        "FALSE_SUCCESS",
    ),
    _flaw("root-key-lost", f"{_N3000} 3.1", "the card takes unsigned images again after a reset", "BREACH"),
    _flaw(
        "cancellations-lost", f"{_N3000} 3.1", "the card takes a cancelled CSK again after a reset", "BREACH"
    ),
    _flaw(
        "root-key-ignored",
        "field report 1; reports F28",
        "the card shows a root key, and takes unsigned images",
        "BREACH",
    ),
    _flaw(
        "reset-stays-away",
        "OFS/opae-sdk#1583; reports F3",
        "rsu says complete, and the card is gone",
        "FALSE_SUCCESS",
    ),
)


def _tool(name: str, reference: str, claims: str, predicts: str) -> KnownDefect:
    return KnownDefect(name, "tool", reference, claims, predicts, switch=name)


_TOOLS: Final = (
    _tool(
        "fpgasupdate-ignores-error",
        f"{_N3000} 5.1",
        "fpgasupdate says OK of a refused image",
        "FALSE_SUCCESS",
    ),
    _tool(
        "fpgasupdate-exits-0",
        "OFS/opae-sdk PR#2422 (the class)",
        "fpgasupdate says why it failed, and exits with 0",
        "FALSE_SUCCESS",
    ),
    _tool(
        "fpgasupdate-misses-phase",
        "OFS/opae-sdk PR#1616, efc2a8b9c",
        "fpgasupdate times out, and the image is there",
        "FALSE_FAILURE",
    ),
    _tool(
        "fpgasupdate-refuses-board",
        "OFS/opae-sdk PR#3049; reports F8",
        "fpgasupdate refuses every card of this kind, and nothing is tried",
        "NOT_ATTEMPTED",
    ),
    _tool("rsu-resets-nothing", "OFS/opae-sdk PR#2499", "rsu says complete, and nothing was reset", "FAILED"),
    _tool(
        "rsu-fails-after-reset",
        "OFS/opae-sdk PR#3073",
        "rsu exits with 1 after a reset that was made",
        "FALSE_FAILURE",
    ),
    _tool(
        "fpgainfo-none-for-unread",
        "board_common.c; reports F26",
        "fpgainfo shows no cancelled key, for it could not read them",
        "MISREPORT",
    ),
    _tool(
        "fpgainfo-count-of-before",
        "reports S16 (the class)",
        "fpgainfo shows the flash count of before",
        "MISREPORT",
    ),
    _tool("fpgainfo-root-of-bmc", f"{_N3000} 4.8", "fpgainfo shows another section's root key", "MISREPORT"),
    _tool(
        "fpgainfo-boot-page-inverted",
        "OFS/opae-sdk PR#2158",
        "fpgainfo shows the factory page for the user page",
        "MISREPORT",
    ),
    _tool(
        "driver-starts-nothing",
        f"{_N3000} 5.1",
        "fpgasupdate says OK, for the status is idle",
        "FALSE_SUCCESS",
    ),
    _tool(
        "driver-without-control",
        "LP 2160223; reports F2",
        "rsu finds no way to reset the card",
        "FAILED",
    ),
    _tool(
        "driver-forgets-error",
        f"{_N3000} 4.2",
        "fpgasupdate says OK, for the error is empty",
        "FALSE_SUCCESS",
    ),
    _tool(
        "driver-logs-code-of-before",
        f"{_N3000} 3.2",
        "the kernel log has the code of another update",
        "FAILED",
    ),
    _tool(
        "driver-hides-keys",
        "OFS/opae-sdk#3172; reports F7, F26",
        "fpgainfo shows None for keys that nothing can read",
        "UNKNOWN_AS_VALUE",
    ),
)


#: Driver generation -> what is tried on it besides: it takes an update and shows errors and keys in a way of
#: its own, and with A come the vendor's tools in a container (fact sheet of the N3000, sections 4 and 5).
_EARLIER: Final = {
    "A": (
        "fpgasupdate-ignores-error", "fpgasupdate-exits-0", "rsu-resets-nothing", "rsu-fails-after-reset",
        "fpgainfo-none-for-unread", "fpgainfo-count-of-before", "driver-starts-nothing",
        "driver-forgets-error", "driver-hides-keys",
    ),
    "B": (
        "fpgasupdate-misses-phase", "driver-starts-nothing", "driver-forgets-error", "driver-hides-keys",
    ),
    "C": ("driver-starts-nothing", "driver-forgets-error", "driver-hides-keys"),
}  # fmt: skip


def _earlier() -> Iterator[KnownDefect]:
    """Yield the defects of tools and drivers once more for each earlier generation that can have them."""
    for generation, names in _EARLIER.items():
        for each in _TOOLS:
            if each.name in names:
                yield replace(each, name=f"{each.name}-of-{generation.lower()}", generation=generation)


def _registry(name: str, reference: str, claims: str, predicts: str, point: str, action: str) -> KnownDefect:
    return KnownDefect(name, "registry", reference, claims, predicts, switch=Struck(point, action))


_PUT: Final = "before:manifest-put"
_ANSWERED: Final = "after:manifest-put"
_REGISTRIES: Final = (
    _registry(
        "layer-cut-short",
        "distribution#4674; LP 2115528",
        "the registry answers 201, and a layer is truncated",
        "FALSE_SUCCESS",
        _PUT,
        "truncate-blob",
    ),
    _registry(
        "layer-bit-flipped",
        "distribution#4674; goharbor/harbor#20466",
        "the registry answers 201, and a layer has another digest",
        "FALSE_SUCCESS",
        _PUT,
        "flip-blob",
    ),
    _registry(
        "token-of-a-fast-clock",
        "docker/hub-feedback#647; reports R18",
        "the registry answers 401 to tokens that are not valid yet",
        "FAILED",
        "before:ping",
        "skew-token",
    ),
    _registry(
        "left-read-only", "92f1658c2", "the registry answers 405 to every write", "FAILED", _PUT, "read-only"
    ),
    _registry(
        "garbage-collected-mid-push",
        "LP 2044493, 2119243, 2121108",
        "the registry answers 404 to a manifest whose layers it had",
        "FAILED",
        _PUT,
        "collect-garbage-read-only",
    ),
    _registry(
        "token-key-of-before",
        "LP 2013800; goharbor/harbor#18773",
        "the registry answers 401 to every token",
        "FAILED",
        _PUT,
        "rotate-keys-registry-only",
    ),
    _registry("registry-gone", "reports R35", "nothing answers", "FAILED", _PUT, "stop"),
    _registry(
        "manifest-forbidden",
        "containerd#2440, docker/buildx#196",
        "the registry answers 403 to the last request of a push",
        "FAILED",
        _PUT,
        "answer-403",
    ),
    _registry(
        "manifest-unknown",
        "goharbor/harbor#14902",
        "the registry answers 404 to the last request of a push",
        "FAILED",
        _PUT,
        "answer-404",
    ),
    _registry(
        "kept-and-denied",
        "containerd PR#5276",
        "the registry answers 403, and has the image",
        "FALSE_FAILURE",
        _ANSWERED,
        "answer-403",
    ),
    _registry(
        "disk-full",
        "reports R33",
        "the registry answers 500 to the last request of a push, for its disk is full",
        "FAILED",
        _PUT,
        "disk-full",
    ),
    _registry(
        "killed-at-manifest",
        "reports R7; fact sheet of the registry, section 3",
        "the registry answers 201 to a manifest of which a kill has left no bytes",
        "FALSE_SUCCESS",
        _PUT,
        "kill-at-open:manifest-blob",
    ),
    _registry(
        "tokens-denied",
        "distribution#4024",
        "nobody can ask for what the registry has",
        "UNVERIFIABLE",
        _ANSWERED,
        "deny-token",
    ),
)


def _client(name: str, reference: str, claims: str, predicts: str) -> KnownDefect:
    return KnownDefect(f"pushed-by-{name}", "client", reference, claims, predicts, switch=name)


_CLIENTS: Final = (
    _client(
        "docker-naive",
        "field report 2, LP 2013800",
        "the client drops the error that it was told",
        "FALSE_SUCCESS",
    ),
    _client(
        "sysinv-download",
        "field report 2, LP 2013800, 8f02a3cf7",
        "the log says download succeeded",
        "FALSE_SUCCESS",
    ),
    _client(
        "docker-inspect",
        "LP 2115528, 9b7a3a46d",
        "the client takes an older image for the new one",
        "FALSE_SUCCESS",
    ),
    _client(
        "docker-stream",
        "LP 2044493; reports R27",
        "the client says done of layers that were collected",
        "FALSE_SUCCESS",
    ),
    _client(
        "docker-cli",
        "LP 2044493; reports R27",
        "docker push says done of layers that were collected",
        "FALSE_SUCCESS",
    ),
    _client("skopeo", "skopeo#1639", "skopeo says done of layers that were collected", "FALSE_SUCCESS"),
    _client("skopeo-retry", "skopeo#1639", "skopeo says done of layers that were collected", "FALSE_SUCCESS"),
    _client(
        "oci-once",
        "distribution#1601, moby#33558",
        "the client gives up where its one token is refused",
        "FAILED",
    ),
    _client(
        "oci-renew",
        "LP 2044493; reports R28",
        "the client says done of layers that were collected",
        "FALSE_SUCCESS",
    ),
)

#: All of these kinds, in the order in which they are listed.
TABLE: Final = (
    *(_unchecked(check, what) for check, what in _UNCHECKED.items()),
    *_FLAWS,
    *_TOOLS,
    *_earlier(),
    *_REGISTRIES,
    *_CLIENTS,
)
