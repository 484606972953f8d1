"""Claims that contradict each other, found before any truth is read; and claims that do not."""

from support import field_reports as reports

from harness.scenarios.field_logs.contradictions import contradictions, repository_of


def found(log) -> list[tuple[str, str, str]]:
    return [(each.verdict.value, each.reporter, each.checker) for each in contradictions(log)]


def test_those_of_the_cloud(read) -> None:
    log = read(reports.CLOUD)
    assert found(log) == [
        ("CONTRADICTION", "sysinv-applied", "applied"),
        ("CONTRADICTION", "controller-applied", "across"),
        ("FALSE_SUCCESS", "dcmanager-sync", "sync_status"),
        ("FALSE_SUCCESS", "dcmanager-sync", "sync_status"),
        ("CONTRADICTION", "dcmanager-sync", "sync_status"),
    ]
    whys = [each.why for each in contradictions(log)]
    assert "system-controller applies image 11 to subcloud4=4, which subcloud4 has" in whys[1]
    assert [why.split()[0] for why in whys[2:]] == ["subcloud1", "subcloud2", "subcloud4"]
    assert [each.stated for each in contradictions(log)] == [True, True, True, True, False]


def test_those_of_the_pushes_are_of_the_images_that_were_refused(read) -> None:
    log = read(reports.PUSHES)
    assert found(log) == [("FALSE_SUCCESS", "log:sysinv", "push")] * len(reports.LATE)
    said = {each.claims[0].claim.subject.name.rpartition("-")[2] for each in contradictions(log)}
    assert said == {f"{name}:v0.15.0" for name in reports.LATE}


def test_a_refusal_that_a_later_push_has_made_good_is_none(read) -> None:
    taken = (
        '2022-09-21T18:57:00.000 c registry[1]: time="2022-09-21T18:57:00Z" level=info msg="x" '
        'http.request.method=PUT http.request.host="registry.local:9001" http.response.status=201 '
        'http.request.uri="/v2/quay.io/jetstack/cert-manager-webhook/manifests/v0.15.0"\n'
    )
    assert len(found(read(reports.PUSHES + taken))) == len(reports.LATE) - 1


def test_a_refusal_long_after_a_download_is_of_another_push(read) -> None:
    assert found(read(reports.SYSINV, reports.REGISTRY.replace("18:56:25", "19:56:25"))) == []


def test_a_tool_and_the_kernel(read) -> None:
    assert found(read(reports.CARD)) == []
    assert found(read(reports.CARD_FALSE)) == [("CONTRADICTION", "fpgasupdate", "contradiction")]
    assert found(read(reports.CARD_FALSE.replace("0x00000011", "0x00000000"))) == []


def test_a_flag_and_its_labels(read) -> None:
    row = reports.image_row(reports.TWO, "2", "False", "[{u'a': u'b'}]")
    assert found(read(f"{reports.HEAD}\n{row}\n")) == [("CONTRADICTION", "sysinv-applied", "applied")]


def test_images_for_other_labels_or_of_other_kinds_are_none(read) -> None:
    apart = reports.image_row(reports.ELEVEN, "11", "True", "[{u'a': u'b'}]")
    other = reports.image_row(reports.TWO, "2", "True", "[{u'a': u'c'}]")
    assert found(read(f"{reports.HEAD}\n{apart}\n{other}\n")) == []
    key = reports.image_row(reports.TWO, "2", "True", "[{u'a': u'b'}]").replace("functional", "root-key")
    assert found(read(f"{reports.HEAD}\n{apart}\n{key}\n")) == []


def test_a_strategy_that_is_complete_with_a_failed_step(read) -> None:
    strategy = "| Field | Value |\n| strategy type | firmware |\n| state | {} |\n\n"
    step = "| cloud | stage | state | details | started_at | finished_at |\n"
    step += "| near | 1 | failed | x | None | None |\n"
    assert found(read(strategy.format("complete") + step)) == [
        ("CONTRADICTION", "dcmanager-strategy", "orchestration")
    ]
    assert found(read(strategy.format("failed") + step)) == []


def test_repositories_are_told_without_their_tags() -> None:
    assert repository_of("registry.local:9001/a/b:v1") == repository_of("registry.local:9001/a/b")
    assert repository_of("no Image") == "no Image"
