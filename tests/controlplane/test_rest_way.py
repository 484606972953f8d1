"""The REST way into a system, over real HTTP: what it reads, what it refuses to take for an answer."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any

import pytest
from support.scripted_http import Scripted
from support.served_system import Serve, Served
from support.starlingx_lab import CARD

from harness.controlplane.changes import Change
from harness.controlplane.gate import Permits
from harness.controlplane.protocol import EVERY_DEVICE, Upload
from harness.controlplane.rest import RestWay
from harness.controlplane.session import Login
from harness.errors import (
    ConfigurationError,
    ControlPlaneError,
    DeadlineError,
    HarnessError,
    LoginRefusedError,
    NoSuchRecordError,
    NotOfferedError,
    RefusedError,
    UnreachableError,
)
from harness.judgement.values import Unknown

NOBODY = "00000000-0000-4000-8000-000000000000"


@pytest.fixture
def way(served: Served) -> Iterator[RestWay]:
    found = RestWay("system1", served.login)
    yield found
    found.close()


def do(way: RestWay, change: Change) -> list[Any]:
    """Carry out a change past the interlock, which has tests of its own."""
    return way.carry_out(change, Permits(change, "a test"))


# -- reading ----------------------------------------------------------------------------------------------


def test_images_as_the_api_shows_them(served: Served, way: RestWay) -> None:
    first = served.lab.upload(bitstream_id="0x11", name="one")
    second = served.lab.upload(kind="key-revocation", revoke_key_id="3")
    served.lab.assign("k=v")
    served.lab.apply(first, "k=v", "floating=1")
    served.lab.apply(second)
    one, two = way.images()
    assert (one.uuid, one.bitstream_id, one.name, one.bmc) == (first, "0x11", "one", False)
    assert one.applied_labels == (("k", "v"), ("floating", "1"))
    assert (two.uuid, two.revoke_key_id, two.bmc) == (second, 3, None)
    assert (two.applied, two.applied_labels) == (True, (EVERY_DEVICE,))
    assert isinstance(one.created_at, Unknown)  # a list does not show it
    assert isinstance(way.image("one").created_at, str)
    assert way.image(first).uuid == first


def test_fields_that_a_release_does_not_have_are_unknown(serve: Serve) -> None:
    served = serve("stx-2020-07", era="docker", generation="A")
    served.lab.upload()
    way = RestWay("system1", served.login)
    (image,) = way.images()
    way.close()
    assert isinstance(image.bmc, Unknown)
    assert isinstance(image.retimer_included, Unknown)


def test_states_and_labels_name_host_and_device(served: Served, way: RestWay) -> None:
    uuid = served.lab.upload()
    served.lab.assign("k=v")
    served.lab.apply(uuid, "k=v", "floating=1")
    (state,) = way.states()
    assert (state.hostname, state.address, state.image_uuid, state.status) == (
        "controller-0", CARD, uuid, "pending"
    )  # fmt: skip
    label, floating = way.labels()
    assert (label.hostname, label.device, label.label_key) == ("controller-0", "pci_0000_b2_00_0", "k")
    assert (floating.hostname, floating.device, floating.label_value) == (None, None, "1")


def test_hosts_devices_and_alarms(served: Served, way: RestWay) -> None:
    (found,) = way.hosts()
    assert (found.hostname, found.administrative) == ("controller-0", "unlocked")
    assert found.device_image_update is None
    assert way.device("controller-0", CARD) == way.device("controller-0", "pci_0000_b2_00_0")
    assert way.device("controller-0", CARD).root_key == served.lab.device["root_key"]
    assert way.alarms() == []
    served.lab.apply(served.lab.upload())
    assert [alarm.alarm_id for alarm in way.alarms()] == ["900.006"]


@pytest.mark.parametrize("page", [1, 2, 5, 6])
def test_images_page_by_page(served: Served, page: int) -> None:
    uuids = [served.lab.upload() for _ in range(5)]
    way = RestWay("system1", served.login, page=page)
    assert [image.uuid for image in way.images()] == uuids
    assert way.evidence.text.count('"device_images"') == 5 // page + 1
    way.close()


# -- changing ---------------------------------------------------------------------------------------------


def test_life_of_an_image(served: Served, way: RestWay) -> None:
    upload = Upload(b"image", "a.bin", "functional", bitstream_id="0x2", name="one", bmc=True)
    (image,) = do(way, Change("image-upload", image=upload))
    assert (image.bitstream_id, image.name, image.bmc) == ("0x2", "one", True)
    stored = list(served.lab.system.images_folder.iterdir())
    assert [path.read_bytes() for path in stored] == [b"image"]
    (label,) = do(way, Change("label-assign", "controller-0", CARD, (("k", "v"),)))
    assert (label.label_key, label.label_value) == ("k", "v")
    (applied,) = do(way, Change("image-apply", image.uuid, labels=(("k", "v"),)))
    assert applied.applied_labels == (("k", "v"),)
    do(way, Change("image-remove", image.uuid, labels=(("k", "v"),)))
    do(way, Change("label-remove", "controller-0", CARD, keys=("k",)))
    do(way, Change("image-delete", image.uuid))
    assert (way.images(), way.labels(), way.states()) == ([], [], [])


def test_answer_to_an_update_is_of_before(served: Served, way: RestWay) -> None:
    served.lab.apply(served.lab.upload("unsigned"))
    (answer,) = do(way, Change("host-update", "controller-0"))
    assert answer.device_image_update == "pending"
    served.lab.system.settle()
    assert way.host("controller-0").device_image_update == ""


def test_lock_and_unlock(served: Served, way: RestWay) -> None:
    do(way, Change("host-lock", "controller-0"))
    served.lab.pass_time(60)
    assert way.host("controller-0").administrative == "locked"
    do(way, Change("host-unlock", "controller-0"))
    served.lab.pass_time(600)
    assert way.host("controller-0").administrative == "unlocked"


def test_a_permit_for_something_else_changes_nothing(served: Served, way: RestWay) -> None:
    uuid = served.lab.upload()

    @dataclass
    class Wrong:
        change: Change

        def command(self, host: str, words: Any) -> Any:
            return Permits(self.change, "a test").command(host, ("DELETE", "/device_images/other", "null"))

        def write(self, host: str, path: str) -> Any:
            raise AssertionError("nothing is written")

    with pytest.raises(RefusedError, match="does not cover"):
        way.carry_out(Change("image-delete", uuid), Wrong(Change("image-delete", uuid)))
    assert [image.uuid for image in way.images()] == [uuid]


# -- errors -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("ask", "said"),
    [
        (lambda way: way.image("nobody"), "Device image nobody could not be found"),
        (lambda way: way.host("compute-9"), "host not found: compute-9"),
        (lambda way: way.device("controller-0", "0000:ff:00.0"), "no PCI device 0000:ff:00.0"),
        (lambda way: do(way, Change("image-apply", NOBODY)), "image does not exist"),
        (lambda way: do(way, Change("image-delete", NOBODY)), "could not be found"),
        (lambda way: do(way, Change("host-update", "compute-9")), "host not found"),
        (lambda way: do(way, Change("label-remove", "controller-0", CARD, keys=("k",))), "no label k"),
    ],
)
def test_what_is_not_there(way: RestWay, ask: Callable[[RestWay], Any], said: str) -> None:
    with pytest.raises(NoSuchRecordError, match=said):
        ask(way)


def test_text_of_the_system_in_the_error(served: Served, way: RestWay) -> None:
    """The body is JSON in JSON; what it says stands in the message."""
    do(way, Change("label-assign", "controller-0", CARD, (("k", "v"),)))
    with pytest.raises(ControlPlaneError, match=r"\(400\): Device label \(k, v\) already exists"):
        do(way, Change("label-assign", "controller-0", CARD, (("k", "v"),)))
    with pytest.raises(ControlPlaneError, match="not in the process of updating"):
        do(way, Change("host-abort", "controller-0"))


def test_upload_that_is_answered_with_200_and_refused(served: Served, way: RestWay) -> None:
    upload = Upload(b"image", "a.bin", "functional", pci_device="0b31", bitstream_id="2")
    with pytest.raises(ControlPlaneError, match="Invalid PCI vendor/device ID: 8086 0b31"):
        do(way, Change("image-upload", image=upload))
    with pytest.raises(ControlPlaneError, match="500"):  # what is not looked for is no JSON
        again = Upload(b"image", "a.bin", "functional", bitstream_id="2", uuid=served.lab.upload())
        do(way, Change("image-upload", image=again))


def test_reader_may_not_change(served: Served) -> None:
    way = RestWay("system1", replace(served.login, user="reader"))
    assert way.images() == []
    with pytest.raises(ControlPlaneError, match=r"not permit.*not authorized"):
        do(way, Change("image-apply", served.lab.upload()))
    way.close()


# -- troubles ---------------------------------------------------------------------------------------------


def test_expired_tokens_are_renewed(served: Served, way: RestWay) -> None:
    uuid = served.lab.upload()
    assert len(way.images()) == 1
    served.trouble("expire-tokens")
    assert len(way.images()) == 1
    served.trouble("expire-tokens")
    (image,) = do(way, Change("image-apply", uuid))
    assert image.applied
    served.lab.pass_time(2 * 3600)  # in lab time, of which the clock of the harness knows nothing
    assert way.image(uuid).applied


def test_service_that_is_away_for_a_moment(served: Served, way: RestWay) -> None:
    uuid = served.lab.upload()
    served.trouble("refuse-requests", 3)
    assert len(way.images()) == 1
    served.trouble("refuse-requests", 1)
    with pytest.raises(UnreachableError, match="503"):  # a change is not asked again
        do(way, Change("image-apply", uuid))
    assert not way.image(uuid).applied


TOKEN = {
    "issued_at": "2026-11-30T09:00:00.000000Z",
    "expires_at": "2026-11-30T10:00:00.000000Z",
    "catalog": [],
}


@pytest.fixture
def scripted() -> Iterator[Callable[..., Scripted]]:
    """Start servers that are not quite Keystone or sysinv; they end with the test."""
    made: list[Scripted] = []

    def give(**answers: Any) -> Scripted:
        """``version``, ``token``, ``other``: status and body; a token's catalogue leads to the server."""

        def answer(method: str, path: str) -> tuple[int, Any]:
            if path == "/v3":
                return answers.get("version", (200, {"version": {"id": "v3.14"}}))  # type: ignore[no-any-return]
            if path == "/v3/auth/tokens":
                endpoint = {"interface": "public", "region": "RegionOne", "url": made[-1].url + "/v1"}
                catalogue = [{"type": "platform", "name": "sysinv", "endpoints": [endpoint]}]
                token = {**TOKEN, "catalog": catalogue} | answers.get("life", {})
                return answers.get("token", (201, {"token": token}))  # type: ignore[no-any-return]
            other = answers.get("other", (200, {"ihosts": []}))
            return other() if callable(other) else other  # type: ignore[no-any-return]

        made.append(Scripted(answer))
        return made[-1]

    yield give
    for server in made:
        server.close()


def entering(server: Scripted, password: str = "secret", **more: Any) -> RestWay:
    return RestWay("system1", Login(server.url + "/v3", "admin", password, **more), deadline=5)


def test_wrong_password_is_tried_once(scripted: Callable[..., Scripted]) -> None:
    server = scripted(token=(401, {"error": {"code": 401, "message": "The request requires", "title": "x"}}))
    for _ in range(3):  # each with a session of its own
        with pytest.raises(LoginRefusedError) as caught:
            entering(server, "guess-1").hosts()
        assert "guess-1" not in str(caught.value)
    assert server.asked.count("POST /v3/auth/tokens") == 1


def test_wrong_password_of_the_emulated_system(served: Served) -> None:
    way = RestWay("system1", replace(served.login, password="not it"))
    with pytest.raises(LoginRefusedError, match="admin"):
        way.images()
    way.close()


def test_token_that_is_never_taken(scripted: Callable[..., Scripted]) -> None:
    server = scripted(other=(401, "no"))
    with pytest.raises(LoginRefusedError, match="not even a new one"):
        entering(server).hosts()
    assert server.asked.count("POST /v3/auth/tokens") == 2
    assert server.asked.count("GET /v1/ihosts") == 2


@pytest.mark.parametrize(("expires", "logins"), [(TOKEN["issued_at"], 2), (TOKEN["expires_at"], 1)])
def test_token_is_renewed_before_its_end(
    scripted: Callable[..., Scripted], expires: str, logins: int
) -> None:
    server = scripted(life={"expires_at": expires})
    way = entering(server)
    assert way.hosts() == way.hosts() == []
    assert server.asked.count("POST /v3/auth/tokens") == logins
    way.close()


@pytest.mark.parametrize(
    ("answers", "said"),
    [
        ({"version": (200, "<html>Apache2 Default Page</html>")}, "no API of StarlingX.*Apache2"),
        ({"version": (200, {"versions": {"values": []}})}, "no Keystone of version 3"),
        ({"version": (404, "not here")}, "no such route.*404"),
        ({"token": (201, {"token": {}})}, "no Keystone of version 3"),
        ({"token": (201, {"token": TOKEN})}, "no StarlingX system"),
        ({"other": (200, "<html></html>")}, "no API of StarlingX"),
        ({"other": (404, "<html>404 Not Found</html>")}, "no such route"),
        ({"other": (200, {"something": "else"})}, "no list of ihosts"),
        ({"other": (200, {"ihosts": [{"uuid": "x"}]})}, "HostState without hostname"),
        ({"other": (500, "<html><h1>500</h1> Internal</html>")}, r"\(500\): 500 Internal"),
    ],
)
def test_endpoint_that_is_no_starlingx(
    scripted: Callable[..., Scripted], answers: dict[str, Any], said: str
) -> None:
    with pytest.raises(HarnessError, match=said) as caught:
        entering(scripted(**answers)).hosts()
    assert isinstance(caught.value, ConfigurationError | NotOfferedError | ControlPlaneError)


def test_unknown_region_says_which_there_are(served: Served) -> None:
    way = RestWay("system1", replace(served.login, region="Mars"))
    with pytest.raises(ConfigurationError, match="no region 'Mars'") as caught:
        way.images()
    assert "RegionOne" in caught.value.hint
    way.close()


def test_nobody_listens(scripted: Callable[..., Scripted]) -> None:
    server = scripted()
    login = Login("http://127.0.0.1:1/v3", "admin", "secret")
    with pytest.raises(UnreachableError, match="does not answer"):
        RestWay("system1", login, deadline=5).hosts()
    assert server.asked == []


def test_deadline_says_what_was_waited_for(scripted: Callable[..., Scripted]) -> None:
    release = threading.Event()

    def late() -> tuple[int, Any]:
        release.wait(20)
        return 200, {"ihosts": []}

    way = RestWay("system1", Login(scripted(other=late).url + "/v3", "admin", "secret"), deadline=1.5)
    try:
        with pytest.raises(DeadlineError, match=r"GET .*/ihosts"):
            way.hosts()
    finally:
        release.set()
        way.close()
