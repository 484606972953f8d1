"""Our OCI client against a real registry: what it says is held to the truth, in trouble at exact points."""

import http.server
import shutil
import threading
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from harness.errors import ConfigurationError
from harness.registry.archives import read_image, write_layout
from harness.registry.assembled import ACCOUNT, RegistryLab
from harness.registry.clients.catalogue import Surroundings
from harness.registry.clients.oci_http import OciPull, OciPush, once, pull, renewing
from harness.registry.clients.oci_session import PATIENT, Tries, parse_challenge
from harness.registry.clients.protocol import Destination, PushClient, Report
from harness.registry.images import (
    Content,
    Image,
    ImageRecipe,
    IndexRecipe,
    make_image,
    make_index,
    sized_layers,
)
from harness.registry.ports import free_port
from harness.registry.reference import Reference, parse_reference
from harness.registry.service import How
from harness.registry.truth import Expected, TruthState

IMAGE = make_image(ImageRecipe(sized_layers(3, 40_000)))
ONE_LAYER = make_image(ImageRecipe(sized_layers(1, 900_000)))
CHILDREN = (
    ImageRecipe(sized_layers(2, 3000)),
    ImageRecipe(sized_layers(1, 4000), architecture="arm64", form="oci"),
)
CONTENTS: dict[str, Content] = {
    "image": IMAGE,
    "image of Docker's form": make_image(ImageRecipe(sized_layers(2, 3000), form="docker")),
    "index with children": make_index(IndexRecipe(CHILDREN)),
    "layers that are the same": make_image(ImageRecipe(sized_layers(1, 3000) * 3)),
    "empty layers": make_image(ImageRecipe(sized_layers(2, 0))),
}
#: For what does not get better: the tests need not wait for it as a push does.
SHORT = Tries(most=3, seconds=1.0, first=0.05)


@pytest.fixture
def surroundings(tmp_path: Path) -> Surroundings:
    return Surroundings(tmp_path / "work")


def destination(lab: RegistryLab, name: str = "a/b") -> Destination:
    registry = lab.endpoint.url.partition("//")[2]
    return Destination(Reference(registry, name, "v1"), lab.authority.file, ACCOUNT, "lab-only")


def state(lab: RegistryLab, content: Content, where: Destination) -> TruthState:
    return lab.probe.image(where.reference, Expected(content.digest)).state


def pushed(client: PushClient, content: Content, where: Destination, deadline: float = 60.0) -> Report:
    client.prepare(content, where)
    try:
        return client.push(content, where, deadline=deadline)
    finally:
        client.forget(content, where)
        client.close()


def at_byte(image: Image, byte: int, act: Callable[[], object]) -> Image:
    """Return the image whose first layer calls ``act`` when ``byte`` is reached, the first time."""
    layer = image.layers[0]
    left = [act]

    def source() -> Iterator[bytes]:
        sent = 0
        for piece in layer.source():
            for at in range(0, len(piece), 10_000):
                if sent >= byte and left:
                    left.pop()()
                yield piece[at : at + 10_000]
                sent += len(piece[at : at + 10_000])

    return replace(image, layers=(replace(layer, source=source), *image.layers[1:]))


@pytest.mark.parametrize("content", CONTENTS.values(), ids=CONTENTS)
def test_what_is_done_is_complete(lab: RegistryLab, surroundings: Surroundings, content: Content) -> None:
    clients = {"a/once": once(surroundings), "a/chunks": renewing(surroundings, chunk=10_000)}
    for name, client in clients.items():
        where = destination(lab, name)
        report = pushed(client, content, where)
        assert (report.result, report.digest, report.error) == ("done", content.digest, "")
        assert report.waited == 0
        found = lab.probe.image(where.reference, Expected(content.digest), restart=False)
        assert found.state is TruthState.COMPLETE
        pulled = pull(surroundings).pull(where)
        assert (pulled.result, pulled.digest) == ("done", content.digest)


def test_a_second_push_sends_nothing_again(lab: RegistryLab, surroundings: Surroundings) -> None:
    pushed(once(surroundings), IMAGE, destination(lab))
    report = pushed(once(surroundings), IMAGE, destination(lab))
    assert sorted(report.log[:-1]) == sorted(f"{blob.digest}: exists" for blob in IMAGE.blobs())


def test_one_token_does_for_a_push(lab: RegistryLab, surroundings: Surroundings) -> None:
    for client in (once(surroundings), renewing(surroundings)):
        before = len(lab.tokens.issued())
        pushed(client, IMAGE, destination(lab))
        (issued,) = lab.tokens.issued(before)
        assert issued.asked == ("repository:a/b:pull,push",)


# -- keys and certificates change, the registry restarts ----------------------------------------------------


def test_rotated_keys_fail_the_token_that_was_got_before(lab: RegistryLab) -> None:
    """Between two PATCHes: the upload itself is intact, and the token is not taken any more."""
    image = at_byte(ONE_LAYER, 300_000, lab.rotate)
    client = OciPush("once in chunks", Tries(), chunk=100_000, parallel=1)
    report = pushed(client, image, destination(lab))
    assert report.result == "failed"
    assert "PATCH" in report.error
    assert "401 UNAUTHORIZED" in report.error
    assert report.digest == ""
    assert state(lab, ONE_LAYER, destination(lab)) is TruthState.ABSENT


def test_rotated_keys_do_not_fail_a_client_that_renews(lab: RegistryLab) -> None:
    image = at_byte(ONE_LAYER, 300_000, lab.rotate)
    report = pushed(OciPush("oci", PATIENT, chunk=100_000, parallel=1), image, destination(lab))
    assert (report.result, report.digest) == ("done", ONE_LAYER.digest)
    assert any("401 UNAUTHORIZED" in line for line in report.log)
    assert state(lab, ONE_LAYER, destination(lab)) is TruthState.COMPLETE
    assert len({issued.generation for issued in lab.tokens.issued()}) == 2


@pytest.mark.parametrize("how", ["TERM", "KILL"])
def test_restart_in_the_middle_of_a_request(lab: RegistryLab, how: How) -> None:
    for name, tries, result, truth in (
        ("a/once", Tries(), "failed", TruthState.ABSENT),
        ("a/renew", PATIENT, "done", TruthState.COMPLETE),
    ):
        image = at_byte(ONE_LAYER, 300_000, lambda: lab.registry.restart(how))
        report = pushed(OciPush("oci", tries), image, destination(lab, name))
        assert report.result == result, report
        assert state(lab, ONE_LAYER, destination(lab, name)) is truth


@pytest.mark.parametrize("how", ["TERM", "KILL"])
def test_restart_between_two_requests(lab: RegistryLab, how: How) -> None:
    """Nothing is under way: the upload goes on, and its token is still good."""
    image = at_byte(ONE_LAYER, 300_000, lambda: lab.registry.restart(how))
    report = pushed(OciPush("oci", Tries(), chunk=100_000, parallel=1), image, destination(lab))
    assert (report.result, report.digest) == ("done", ONE_LAYER.digest)
    assert state(lab, ONE_LAYER, destination(lab)) is TruthState.COMPLETE


def test_upload_that_cannot_be_resumed_is_begun_anew(lab: RegistryLab) -> None:
    """Its file goes while the registry is down, as an open upload does when it is purged."""

    def purge() -> None:
        uploads = Path(lab.registry.storage, "docker/registry/v2/repositories/a/b/_uploads")
        lab.registry.restart("KILL", between=lambda: shutil.rmtree(uploads))

    client = OciPush("oci", PATIENT, chunk=100_000, parallel=1)
    report = pushed(client, at_byte(ONE_LAYER, 300_000, purge), destination(lab))
    assert (report.result, report.digest) == ("done", ONE_LAYER.digest)
    assert any("BLOB_UPLOAD" in line for line in report.log)
    assert state(lab, ONE_LAYER, destination(lab)) is TruthState.COMPLETE


def test_waiting_for_a_registry_that_is_down_is_counted(lab: RegistryLab) -> None:
    where = destination(lab)
    lab.registry.stop()
    report = pushed(OciPush("oci", Tries(most=4, seconds=9.0, first=0.1)), IMAGE, where)
    assert report.result == "failed"
    # 0.1 + 0.2 + 0.4 s of three blobs at about the same time, which is not three times as much.
    assert 0.3 < report.waited <= report.seconds
    assert report.waited < 2.0


def test_link_that_a_crash_emptied_is_healed(lab: RegistryLab, surroundings: Surroundings) -> None:
    """HEAD answers 500 for good: a client that insists on it never gets further (fact sheet, section 3)."""
    where = destination(lab)
    pushed(once(surroundings), IMAGE, where)
    lab.registry.stop()
    digest = IMAGE.layers[0].digest[7:]
    link = Path(lab.registry.storage, "docker/registry/v2/repositories/a/b/_layers/sha256", digest, "link")
    link.write_bytes(b"")
    lab.registry.start()
    assert state(lab, IMAGE, where) is TruthState.CORRUPT
    assert pushed(once(surroundings), IMAGE, where).result == "done"
    assert state(lab, IMAGE, where) is TruthState.COMPLETE


def test_deadline_ends_it_while_the_registry_stands_still(lab: RegistryLab) -> None:
    image = at_byte(ONE_LAYER, 300_000, lab.registry.pause)
    report = pushed(OciPush("oci", PATIENT), image, destination(lab), deadline=1.0)
    assert report.result == "interrupted"
    assert "not done after 1 s" in report.error
    assert report.seconds < 5
    lab.registry.resume()


# -- what cannot be -----------------------------------------------------------------------------------------


def test_wrong_password_is_told_at_once(lab: RegistryLab, surroundings: Surroundings) -> None:
    report = pushed(renewing(surroundings), IMAGE, replace(destination(lab), password="not-this-one"))
    assert report.result == "failed"
    assert report.error == f"the token service refuses {ACCOUNT}: 401 UNAUTHORIZED: authentication required"
    assert report.waited == 0
    assert "not-this-one" not in repr(report)


def test_untrusted_certificate(lab: RegistryLab, surroundings: Surroundings) -> None:
    report = pushed(renewing(surroundings), IMAGE, replace(destination(lab), ca_file=None))
    assert report.result == "failed"
    assert "is not trusted" in report.error
    assert report.waited == 0


def test_authority_that_cannot_be_read(lab: RegistryLab, tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match="cannot be read"):
        pushed(OciPush("oci", SHORT), IMAGE, replace(destination(lab), ca_file=tmp_path / "none"))


def test_nobody_listens() -> None:
    where = Destination(Reference(f"127.0.0.1:{free_port('127.0.0.1')}", "a/b", "v1"), plain=True)
    report = pushed(OciPush("oci", SHORT), IMAGE, where)
    assert (report.result, "Connection refused" in report.error) == ("failed", True)


class Page(http.server.BaseHTTPRequestHandler):
    """A web server that is no registry, and says yes to everything."""

    def do_GET(self) -> None:
        self.send_response(200)
        self.end_headers()
        self.wfile.write(b"<html>welcome</html>")

    def log_message(self, *what: object) -> None:
        pass


def test_web_server_that_is_no_registry() -> None:
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Page) as server:
        serving = threading.Thread(target=server.serve_forever)
        serving.start()
        try:
            where = Destination(Reference(f"127.0.0.1:{server.server_port}", "a/b", "v1"), plain=True)
            reports = [pushed(OciPush("oci", SHORT), IMAGE, where), OciPull().pull(where)]
        finally:
            server.shutdown()
            serving.join()
    for report in reports:
        assert report.result == "failed"
        assert "is not a registry: it answers /v2/ with 200" in report.error


def test_illegal_reference_and_one_without_registry() -> None:
    with pytest.raises(ConfigurationError, match="not a legal reference"):
        parse_reference("registry.local:9001/A b:v1")
    with pytest.raises(ConfigurationError, match="names no registry"):
        pushed(OciPush("oci", SHORT), IMAGE, Destination(parse_reference("a/b:v1")))
    with pytest.raises(ConfigurationError, match="cannot take"):
        other = parse_reference(f"registry.local:9001/a/b@{ONE_LAYER.digest}")
        pushed(OciPush("oci", SHORT), IMAGE, Destination(other))


def test_layer_that_changes_or_goes_after_it_was_read(
    lab: RegistryLab, surroundings: Surroundings, tmp_path: Path
) -> None:
    write_layout(IMAGE, tmp_path / "layout")
    image = read_image(tmp_path / "layout")
    file = tmp_path / "layout/blobs/sha256" / IMAGE.layers[1].digest[7:]
    content = file.read_bytes()
    for change, said in (
        (lambda: file.write_bytes(bytes([content[0] ^ 1]) + content[1:]), "400 DIGEST_INVALID"),
        (lambda: file.write_bytes(content[:-1]), "has not the"),
        (file.unlink, "the content cannot be read: "),
    ):
        change()
        report = pushed(once(surroundings), image, destination(lab))
        assert report.result == "failed"
        assert said in report.error
    with pytest.raises(ConfigurationError, match=IMAGE.layers[1].digest):
        read_image(tmp_path / "layout")
    assert state(lab, IMAGE, destination(lab)) is TruthState.ABSENT


def test_pull_says_what_is_damaged(lab: RegistryLab, surroundings: Surroundings) -> None:
    where = destination(lab)
    pushed(once(surroundings), IMAGE, where)
    digest = IMAGE.layers[1].digest[7:]
    data = Path(lab.registry.storage, "docker/registry/v2/blobs/sha256", digest[:2], digest, "data")
    content = data.read_bytes()
    for damaged, said in (
        (content[:-1] + bytes([content[-1] ^ 1]), "with the digest sha256:"),
        (content[:1000], "1000 of"),
    ):
        data.write_bytes(damaged)
        report = OciPull(SHORT).pull(where)
        assert report.result == "failed"
        assert digest in report.error
        assert said in report.error or "ends after 1000 of" in report.error


# -- challenges ---------------------------------------------------------------------------------------------


@given(st.text(max_size=200))
@example('Bearer realm="https://a/token",service="x, y",scope="repository:a/b:pull,push"')
@example('Bearer realm="')
@example("Bearer =,==,a=")
def test_any_challenge_is_parsed(header: str) -> None:
    found = parse_challenge(header)
    assert found.scheme == found.scheme.lower()
    assert all(isinstance(value, str) for value in found.parameters.values())


@given(
    st.dictionaries(
        st.from_regex(r"[a-z]{1,9}", fullmatch=True),
        st.text(st.characters(codec="ascii", exclude_characters='"\\', exclude_categories=["Cc"])),
        min_size=1,
    )
)
def test_values_in_quotes_may_hold_commas_and_equals_signs(parameters: dict[str, str]) -> None:
    header = "Bearer " + ",".join(f'{key}="{value}"' for key, value in parameters.items())
    assert parse_challenge(header).parameters == parameters
