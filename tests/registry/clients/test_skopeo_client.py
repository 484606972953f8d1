"""Real skopeo against a real registry: its words and its exit code, held to the truth."""

import time
from dataclasses import replace
from pathlib import Path

import pytest
from support.processes import alive, wait_until

from harness.errors import BlockedError, ConfigurationError, InfrastructureError
from harness.registry.assembled import ACCOUNT, RegistryLab
from harness.registry.clients import skopeo_program
from harness.registry.clients.catalogue import Surroundings
from harness.registry.clients.protocol import Destination, Report
from harness.registry.clients.skopeo import SkopeoPush, once, pull, retrying
from harness.registry.clients.skopeo_program import Said, Skopeo, find_skopeo
from harness.registry.images import (
    Content,
    ImageRecipe,
    IndexRecipe,
    LayerRecipe,
    make_image,
    make_index,
    sized_layers,
)
from harness.registry.reference import Reference, parse_reference
from harness.registry.truth import Expected, TruthState

IMAGE = make_image(ImageRecipe(sized_layers(2, 5000)))
CONTENTS: dict[str, Content] = {
    "layers packed and not": make_image(ImageRecipe((LayerRecipe(4000), LayerRecipe(3000, "1", gzip=False)))),
    "image of Docker's form": make_image(ImageRecipe(sized_layers(2, 3000), form="docker")),
    "index with children": make_index(
        IndexRecipe((ImageRecipe(sized_layers(1, 900)), ImageRecipe(sized_layers(1, 800))))
    ),
}


@pytest.fixture(scope="module")
def skopeo() -> Skopeo:
    """Debian's skopeo: the machine's, or unpacked into the project; tests install nothing."""
    try:
        return find_skopeo(install=False)
    except BlockedError as error:
        pytest.fail(f"These tests need a real skopeo. {error}", pytrace=False)


@pytest.fixture
def surroundings(tmp_path: Path) -> Surroundings:
    return Surroundings(tmp_path / "work")


def test_one_that_lacks_what_it_needs_is_blocked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    program = tmp_path / "usr/bin/skopeo"
    program.parent.mkdir(parents=True)
    program.write_text("#!/bin/sh\necho 'skopeo: error while loading: libx.so.1'; exit 127\n")
    program.chmod(0o755)
    monkeypatch.setattr(skopeo_program, "provide", lambda *words, **given: program)
    monkeypatch.setattr(skopeo_program, "tools_folder", lambda: tmp_path)
    with pytest.raises(BlockedError, match=r"does not start from .*: .* loading: libx\.so\.1\."):
        find_skopeo()


def destination(lab: RegistryLab) -> Destination:
    registry = lab.endpoint.url.partition("//")[2]
    return Destination(Reference(registry, "a/b", "v1"), lab.authority.file, ACCOUNT, "lab-only")


def pushed(client: SkopeoPush, content: Content, where: Destination, deadline: float = 60.0) -> Report:
    client.prepare(content, where)
    try:
        return client.push(content, where, deadline=deadline)
    finally:
        client.forget(content, where)


@pytest.mark.parametrize("content", CONTENTS.values(), ids=CONTENTS)
def test_what_is_done_has_the_digest_of_the_recipe(
    lab: RegistryLab, surroundings: Surroundings, skopeo: Skopeo, content: Content
) -> None:
    where = destination(lab)
    report = pushed(once(surroundings, skopeo), content, where)
    assert (report.result, report.exit_code, report.digest) == ("done", 0, content.digest), report.text
    assert "Writing manifest to image destination" in report.log
    found = lab.probe.image(where.reference, Expected(content.digest), restart=False)
    assert found.state is TruthState.COMPLETE
    pulled = pull(surroundings, skopeo).pull(where)
    assert (pulled.result, pulled.digest) == ("done", content.digest), pulled.text
    assert list(surroundings.folder.iterdir()) == []


def test_version_and_name(surroundings: Surroundings, skopeo: Skopeo) -> None:
    client = retrying(surroundings, skopeo)
    assert client.name == "skopeo-retry"
    name, version = client.version.split()
    assert (name, version[0].isdigit()) == ("skopeo", True)


def test_secret_is_on_no_command_line_and_in_a_private_file(
    lab: RegistryLab, surroundings: Surroundings, skopeo: Skopeo, tmp_path: Path
) -> None:
    """A program in skopeo's place writes down what it was given."""
    spy = tmp_path / "spy"
    spy.write_text(
        '#!/bin/sh\necho "$@"\nwhile [ "$1" != --authfile ]; do shift; done\n'
        'stat -c "mode %a" "$2"\ncat "$2"; exit 3\n'
    )
    spy.chmod(0o755)
    report = pushed(once(surroundings, Skopeo(spy)), IMAGE, destination(lab))
    command, mode, content = report.text.splitlines()
    assert "lab-only" not in command + report.command
    assert mode == "mode 600"
    assert "c3lzaW52OmxhYi1vbmx5" in content  # base64 of sysinv:lab-only
    assert (report.result, report.exit_code) == ("failed", 3)
    assert list(surroundings.folder.iterdir()) == []


def test_token_that_is_refused_fails_both(
    lab: RegistryLab, surroundings: Surroundings, skopeo: Skopeo
) -> None:
    """A 401 is not tried again, whatever --retry-times says (fact sheet, section 3)."""
    lab.tokens.behave(deny=401)
    for client in (once(surroundings, skopeo), retrying(surroundings, skopeo)):
        report = pushed(client, IMAGE, destination(lab))
        assert (report.result, report.exit_code, report.digest) == ("failed", 1, "")
        assert "unable to retrieve auth token" in report.error
        assert report.waited == 0


def test_retries_count_their_waiting(lab: RegistryLab, surroundings: Surroundings, skopeo: Skopeo) -> None:
    where = destination(lab)
    client = retrying(surroundings, skopeo)
    lab.registry.stop()
    assert pushed(once(surroundings, skopeo), IMAGE, where).result == "failed"
    client.prepare(IMAGE, where)
    report = client.push(IMAGE, where, deadline=30)
    client.forget(IMAGE, where)
    assert report.result == "failed"
    assert "connection refused" in report.error
    # 1, 2 and 4 seconds, and a random part of each.
    assert 7 <= report.waited <= report.seconds


@pytest.mark.parametrize(
    ("text", "waited"),
    [
        ('level=warning msg="Failed, retrying in 1s ... (1/3). Error: x"\n... retrying in 2s ... (2/3)', 3.0),
        ("retrying in 1.5s", 1.5),
        ("retrying in 1m2s", 62.0),
        ("retrying in 500ms", 0.5),
        ("nothing of it", 0.0),
    ],
)
def test_waiting_is_read_from_its_words(text: str, waited: float) -> None:
    assert Said(1, text, 9.0, "skopeo").waited == pytest.approx(waited)


def test_deadline_ends_its_whole_group(lab: RegistryLab, surroundings: Surroundings, tmp_path: Path) -> None:
    """A program that starts another, and neither ends by itself."""
    stubborn = tmp_path / "stubborn"
    stubborn.write_text("#!/bin/sh\ntrap '' TERM\nsleep 600 &\necho started $!\nwait\nsleep 600\n")
    stubborn.chmod(0o755)
    began = time.monotonic()
    report = pushed(once(surroundings, Skopeo(stubborn)), IMAGE, destination(lab), deadline=3.0)
    assert time.monotonic() - began < 20
    assert (report.result, report.exit_code) == ("interrupted", None)
    assert "not done after 3 s; last: started" in report.error
    sleeper = int(report.text.split()[1])
    # Its pipe has closed, so it is ending.
    wait_until(lambda: not alive(sleeper), "the end of what it has started")


def test_deadline_while_the_registry_stands_still(
    lab: RegistryLab, surroundings: Surroundings, skopeo: Skopeo
) -> None:
    lab.registry.pause()
    report = pushed(once(surroundings, skopeo), IMAGE, destination(lab), deadline=1.0)
    assert report.result == "interrupted"
    lab.registry.resume()


# -- what cannot be -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"password": "not-this-one"}, "unauthorized"),
        ({"ca_file": None}, "certificate signed by unknown authority"),
        ({"reference": parse_reference("127.0.0.1:1/a/b:v1")}, "connection refused"),
    ],
)
def test_failure_is_reported_in_its_own_words(
    lab: RegistryLab, surroundings: Surroundings, skopeo: Skopeo, change: dict[str, object], said: str
) -> None:
    where = replace(destination(lab), **change)  # type: ignore[arg-type]
    for report in (
        pushed(once(surroundings, skopeo), IMAGE, where),
        pull(surroundings, skopeo).pull(where),
    ):
        assert (report.result, report.exit_code, report.digest) == ("failed", 1, "")
        assert said in report.error
        assert "not-this-one" not in repr(report)


def test_reference_that_it_cannot_push_to(surroundings: Surroundings, skopeo: Skopeo) -> None:
    client = once(surroundings, skopeo)
    for text in ("a/b:v1", f"registry.local:9001/a/b@{IMAGE.digest}"):
        with pytest.raises(ConfigurationError, match="does not push to"):
            client.prepare(IMAGE, Destination(parse_reference(text)))


def test_damaged_archive_is_told_by_skopeo(
    lab: RegistryLab, surroundings: Surroundings, skopeo: Skopeo
) -> None:
    client, where = once(surroundings, skopeo), destination(lab)
    client.prepare(IMAGE, where)
    (layout,) = surroundings.folder.iterdir()
    layer = layout / "blobs/sha256" / IMAGE.layers[0].digest[7:]
    content = layer.read_bytes()
    layer.write_bytes(content[:-1] + bytes([content[-1] ^ 1]))
    assert client.push(IMAGE, where).result == "failed"
    layer.unlink()
    report = client.push(IMAGE, where)
    client.forget(IMAGE, where)
    assert report.result == "failed"
    assert "no such file or directory" in report.error


def test_full_disk_under_its_archive(lab: RegistryLab, surroundings: Surroundings, skopeo: Skopeo) -> None:
    """One of the files to be written is the full device."""
    client, where = once(surroundings, skopeo), destination(lab)
    client.prepare(IMAGE, where)
    (layout,) = surroundings.folder.iterdir()
    layer = layout / "blobs/sha256" / IMAGE.layers[0].digest[7:]
    layer.unlink()
    layer.symlink_to("/dev/full")
    with pytest.raises(InfrastructureError, match="No space left on device"):
        client.prepare(IMAGE, where)
    assert list(surroundings.folder.iterdir()) == []
