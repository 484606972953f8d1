"""`hil sweep`: real pushes from the command line, what it prints, and how it ends."""

from __future__ import annotations

import json
import signal

import pytest

from harness.faults.registry_actions import ACTIONS
from harness.registry.archives import write_docker_archive
from harness.registry.clients.catalogue import PUSH_CLIENTS
from harness.registry.images import ImageRecipe, make_image, sized_layers
from harness.registry.process import find_registry

SMALL = ("--layers", "2", "--layer-size", "4096")


@pytest.fixture(autouse=True)
def program() -> None:
    find_registry(install=False)  # raises BLOCKED with what is missing


def test_trials_are_given_as_json_and_kept_with_the_run(project) -> None:
    """Fact sheet of the registry, section 3: raw once, keys rotated before the manifest and after it."""
    points = ("--point", "before:manifest-put", "--point", "after:manifest-put")
    ended = project.hil(
        "sweep", "push", "--client", "oci-once", "--action", "rotate-keys", *points, *SMALL, "-o", "json"
    )
    assert ended.code == 0, ended.stderr
    told = json.loads(ended.stdout)
    shown = [(each["point"], each["reported"], each["truth"], each["verdict"]) for each in told["trials"]]
    assert shown == [
        ("before:manifest-put#1", "failed", "ABSENT", "MATCH"),
        ("after:manifest-put#1", "done", "COMPLETE", "MATCH"),
    ]
    needed = {"client", "point", "action", "reported", "truth", "outcome", "verdict", "seconds"}
    assert needed <= told["trials"][0].keys()
    run = project.folder / "reports/latest"
    assert json.loads((run / "sweep.json").read_text()) == told
    assert (run / "history-oci-once.jsonl").exists()
    again = project.hil("judge", "reports/latest", "-o", "json")
    assert json.loads(again.stdout)["counts"]["verdicts"].keys() == {"MATCH"}
    project.assert_nothing_left()


def test_an_archive_is_pushed_as_it_is_and_none_is_told(project) -> None:
    image = make_image(ImageRecipe(sized_layers(2, 3000), form="docker"))
    write_docker_archive(image, project.folder / "saved.tar", ("a/b:v1",))
    words = ("sweep", "push", "--client", "oci-renew", "--action", "restart", "--point", "after:blob-post")
    ended = project.hil(*words, "--image", "saved.tar", "-o", "json")
    assert ended.code == 0, ended.stderr
    assert [each["truth"] for each in json.loads(ended.stdout)["trials"]] == ["COMPLETE"]
    history = (project.folder / "reports/latest/history-oci-renew.jsonl").read_text()
    assert image.config.digest in history, "the config of the archive is what was pushed"
    (project.folder / "saved.tar").write_bytes(b"no image")
    refused = project.hil(*words, "--image", "saved.tar")
    assert refused.code == 2
    assert "saved.tar is no tar file" in refused.stderr


def test_the_table_and_what_is_blocked_with_the_command_that_helps(project) -> None:
    words = ("sweep", "push", "--client", "oci-renew,docker-naive", "--action", "restart", *SMALL)
    words += ("--point", "after:blob-post", "--engine", "none")
    ended = project.hil(*words)
    assert ended.code == 3
    assert "after:blob-post" in ended.stdout
    assert "AS_INTENDED" in ended.stdout
    assert "BLOCKED docker-naive" in ended.stdout
    assert "hint: --engine auto finds one." in ended.stdout
    assert "1/2 oci-renew restart after:blob-post#1: reported done, it is COMPLETE" in ended.stderr
    assert project.hil(*words, "--allow-blocked").code == 0


def test_a_point_that_was_named_and_never_came_is_not_green(project) -> None:
    ended = project.hil(
        *("sweep", "push", "--client", "oci-once", "--action", "restart", *SMALL),
        *("--point", "before:blob-patch", "--point", "after:manifest-put"),
    )
    assert ended.code == 1
    assert "NOT_REACHED oci-once, nothing was tested there: before:blob-patch#1." in ended.stdout


@pytest.mark.parametrize(
    ("words", "hint"),
    [
        (("--client", "oci-onec"), "Did you mean 'oci-once'?"),
        (("--client", ","), "names with commas"),
        (("--action", "restrat"), "Did you mean 'restart'?"),
        (("--point", "before:blob-putt"), "Did you mean 'before:blob-put'?"),
        (("--point", "sent:blob-put"), "before:blob-put"),
    ],
)
def test_a_mistake_is_told_at_once(project, words, hint) -> None:
    ended = project.hil("sweep", "push", *words)
    assert ended.code == 2
    assert hint in ended.stderr
    assert not (project.folder / "reports").exists()


@pytest.fixture
def under_way(project):
    """A sweep that would go on for an hour, after its first trial."""
    many = ("--client", "oci-renew", "--action", "restart", "--repeat", "500", "-o", "json")
    process = project.start("sweep", "push", *many, *SMALL)
    while "reported done" not in process.stderr.readline():
        assert process.poll() is None
    return process


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGHUP], ids=["ctrl-c", "terminal-closed"])
def test_who_is_interrupted_undoes_what_is_disturbed_and_judges_what_there_is(
    project, under_way, number
) -> None:
    under_way.send_signal(number)
    ended = project.end(under_way)
    assert ended.code == 130
    told = json.loads(ended.stdout)
    assert told["interrupted"]
    verdicts = [each["verdict"] for each in told["trials"]]
    assert verdicts[0] == "MATCH"
    assert set(verdicts[1:]) <= {"MATCH", "NOT_REACHED"}  # the last push may have been let go
    project.assert_nothing_left()


def test_what_cannot_be_kept_is_shown_all_the_same(project, under_way) -> None:
    """A file that cannot be written stands for a full disk, which only root could make."""
    (run,) = (project.folder / "reports").iterdir()
    (run / "sweep.json").mkdir()
    under_way.send_signal(signal.SIGTERM)
    ended = project.end(under_way)
    assert ended.code == 3
    assert json.loads(ended.stdout)["trials"][0]["verdict"] == "MATCH"
    assert f"{run.name}/sweep.json cannot be written: Is a directory." in ended.stderr


def test_a_kill_leaves_nothing_behind(project, under_way) -> None:
    under_way.kill()
    assert project.end(under_way).code == -signal.SIGKILL
    project.assert_nothing_left()


@pytest.mark.parametrize(
    ("what", "listed"),
    [
        ("points", ["before:ping#1", "cut:manifest-put#1"]),
        ("actions", list(ACTIONS)),
        ("clients", list(PUSH_CLIENTS)),
    ],
)
def test_what_there_is_can_be_listed(project, what, listed) -> None:
    ended = project.hil("sweep", what)
    assert ended.code == 0
    assert all(word in ended.stdout for word in listed)
