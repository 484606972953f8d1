"""Lines of the second field report, and of a registry, tied to the push that they speak of."""

import pytest

from harness.registry.log_claims import dockerd_says, dockerd_says_of_several, registry_says, sysinv_says
from harness.registry.logs import parse_log
from harness.registry.reference import parse_reference

_SAYS = "129181 INFO sysinv.conductor.kube_app [-]"
_NAME = "quay.io/jetstack/cert-manager-acmesolver:v0.15.0"
SYSINV = [
    f"sysinv 2022-09-21 18:56:09.501 {_SAYS} Image registry.local:9001/{_NAME} is not available in local "
    "registry, download started from public/private registry",
    f"sysinv 2022-09-21 18:56:18.956 {_SAYS} Remove image registry.central:9001/{_NAME} after push to local "
    "registry.",
    f"sysinv 2022-09-21 18:56:18.986 {_SAYS} Image registry.local:9001/{_NAME} download succeeded "
    "in 9 seconds",
]
DOCKERD = """\
2022-09-21T18:56:25.371 controller-0 dockerd[98916]: info time="2022-09-21T18:56:25.371358034Z" level=error \
msg="Upload failed: unauthorized: authentication required"
2022-09-21T18:56:25.371 controller-0 dockerd[98916]: info time="2022-09-21T18:56:25.371428551Z" level=info \
msg="Attempting next endpoint for push after error: unauthorized: authentication required"
""".splitlines()
REGISTRY = (
    'time="2022-09-21T18:56:25Z" level=info msg="response completed" http.request.method={} '
    'http.request.uri="/v2/a/b/manifests/1" http.response.status={}'
)


def test_sysinv_says_done_of_the_image_that_it_names() -> None:
    name = "registry.local:9001/quay.io/jetstack/cert-manager-{}:v0.15.0"
    said = sysinv_says(parse_log(SYSINV), parse_reference(name.format("acmesolver")))
    assert said is not None
    assert (said.reporter, said.result, said.entry.raw) == ("log:sysinv", "done", SYSINV[-1])
    assert sysinv_says(parse_log(SYSINV), parse_reference(name.format("webhook"))) is None


def test_an_image_of_which_only_the_start_was_logged_was_not_reported() -> None:
    image = parse_reference("registry.local:9001/quay.io/jetstack/cert-manager-acmesolver:v0.15.0")
    assert sysinv_says(parse_log(SYSINV[:2]), image) is None


def test_an_engine_that_gives_up_says_that_it_failed_and_why() -> None:
    said = dockerd_says(parse_log(DOCKERD))
    assert said is not None
    assert (said.reporter, said.result) == ("log:dockerd", "failed")
    assert said.error == "unauthorized: authentication required"
    assert said.text == "\n".join(DOCKERD)
    assert dockerd_says(parse_log(DOCKERD[:1])) is None


def test_lines_of_an_engine_are_tied_to_as_many_pushes_as_it_gave_up() -> None:
    unauthorized = '{"errorDetail":{"message":"unauthorized: authentication required"}}'
    entries = list(parse_log(DOCKERD * 2))
    said = dockerd_says_of_several(entries, [unauthorized, "digest: sha256:0", unauthorized])
    assert [each and each.entry for each in said] == [entries[1], None, entries[3]]
    # One line too few: whose it is cannot be told, so it is nobody's.
    assert dockerd_says_of_several(entries[:2], [unauthorized, unauthorized]) == [None, None]


def test_what_an_engine_said_of_a_try_that_was_not_the_last_is_no_word_on_the_push() -> None:
    begins = '{"status":"The push refers to repository [registry.local:9001/a/b]"}\n'
    unauthorized = f'{begins}{{"error":"unauthorized: authentication required"}}\n'
    entries = list(parse_log(DOCKERD))
    assert dockerd_says_of_several(entries, [f"{unauthorized}{begins}digest: sha256:0", ""]) == [None, None]
    assert dockerd_says_of_several(entries, [unauthorized, ""]) != [None, None]


#: The second field report's, but for what is left out in the middle.
REFUSALS = [
    f"2022-09-21T18:56:25.37{at} controller-0 registry[157387]: info "
    f'time="2022-09-21T18:56:25.37{at}063823Z" level=warning msg="error authorizing context: invalid token" '
    'http.request.host="registry.local:9001" http.request.method=POST '
    f'http.request.uri="/v2/{name}/blobs/uploads/" vars.name="{name}"'
    for at, name in enumerate(["quay.io/jetstack/cert-manager-controller", "a/b"])
]


def test_a_token_that_a_registry_refused_is_its_word_on_the_image_of_that_repository() -> None:
    entries = list(parse_log(REFUSALS))
    said = registry_says(entries, parse_reference("registry.local:9001/a/b:1"))
    assert said is not None
    assert (said.result, said.error) == ("failed", "error authorizing context: invalid token")
    assert said.text == REFUSALS[1]
    assert registry_says(entries, parse_reference("registry.local:9001/a:1")) is None


def test_a_manifest_that_came_after_a_refusal_counts_more() -> None:
    entries = list(parse_log([*REFUSALS, REGISTRY.format("PUT", 201)]))
    said = registry_says(entries, parse_reference("registry.local:9001/a/b:1"))
    assert said is not None
    assert said.result == "done"


@pytest.mark.parametrize(
    ("lines", "result"),
    [
        ([("PUT", 201)], "done"),
        ([("PUT", 401)], "failed"),
        ([("PUT", 401), ("PUT", 201)], "done"),
        ([("GET", 200)], None),
        ([], None),
    ],
)
def test_the_registrys_last_answer_to_the_manifest_counts(lines, result) -> None:
    entries = list(parse_log(REGISTRY.format(*line) for line in lines))
    said = registry_says(entries, parse_reference("registry.local:9001/a/b:1"))
    assert (said.result if said else None) == result
    assert registry_says(entries, parse_reference("registry.local:9001/a/b:2")) is None
