"""Log lines of registries and engines in every form of the fact sheets, and what is none of them."""

import json
import string
from datetime import UTC, datetime

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from harness.registry.logs import LogEntry, parse_line, parse_log

#: 2024-03-05T07:08:09Z
WHEN = datetime(2024, 3, 5, 7, 8, 9, tzinfo=UTC).timestamp()
REFUSAL = (
    'time="2024-03-05T07:08:09.250000000Z" level=warning msg="error authorizing context: invalid token" '
    'go.version=go1.19.8 http.request.host="registry.local:9001" http.request.id=0f7c '
    "http.request.method=PUT http.request.uri=/v2/lab/tool/blobs/uploads/ "
    'http.request.useragent="docker/18.09.6 UpstreamClient(Docker-Client/18.09.6 \\\\(linux\\\\))" '
    "vars.name=lab/tool"
)


def check_refusal(entry: LogEntry) -> None:
    assert entry.message == "error authorizing context: invalid token"
    assert entry.level == "warning"
    assert entry.form == "logfmt"
    assert entry.time == pytest.approx(WHEN + 0.25, abs=1e-6)
    assert entry.fields["http.request.host"] == "registry.local:9001"
    assert entry.fields["http.request.method"] == "PUT"
    assert entry.fields["vars.name"] == "lab/tool"
    assert entry.fields["http.request.useragent"].endswith(r"UpstreamClient(Docker-Client/18.09.6 \(linux\))")
    assert not {"time", "level", "msg"} & entry.fields.keys()


def test_logfmt_of_the_registry() -> None:
    entry = parse_line(REFUSAL + "\n")
    check_refusal(entry)
    assert entry.raw == REFUSAL
    assert (entry.host, entry.program, entry.pid) == ("", "", None)


@pytest.mark.parametrize(
    ("prefix", "program", "pid"),
    [
        # StarlingX: a severity before the message, and a time without a zone.
        ("2024-03-05T07:08:09.251 controller-0 registry[157387]: info ", "registry", 157387),
        ("2024-03-05T07:08:09.251988+00:00 controller-0 registry[7]: ", "registry", 7),
        ("Mar  5 07:08:09 controller-0 docker-registry[31]: ", "docker-registry", 31),
        ("<30>Mar  5 07:08:09 controller-0 registry: ", "registry", None),
    ],
)
def test_the_same_within_syslog(prefix: str, program: str, pid: int | None) -> None:
    entry = parse_line(prefix + REFUSAL)
    check_refusal(entry)
    assert (entry.host, entry.program, entry.pid) == ("controller-0", program, pid)


def test_escapes_that_somebody_took_a_backslash_from_are_kept() -> None:
    # The second field report has them so: \( is no escape of Go's.
    entry = parse_line(
        r'level=info msg="x" http.request.useragent="Client \(linux\) \"q\" \x41\u00e9\U0001f600\xff"'
    )
    assert entry.fields["http.request.useragent"] == r'Client \(linux\) "q" Aé😀' + r"\xff"


def test_json_and_logstash_forms() -> None:
    members = {"level": "ERROR", "msg": "boom", "time": "2024-03-05T08:08:09+01:00", "n": 3, "o": {"a": 1}}
    entry = parse_line(json.dumps(members))
    assert (entry.form, entry.level, entry.message, entry.time) == ("json", "error", "boom", WHEN)
    assert entry.fields == {"n": "3", "o": '{"a": 1}'}
    stash = parse_line('{"@timestamp":"2024-03-05T07:08:09Z","@version":1,"level":"info","message":"hi"}')
    assert (stash.message, stash.time, stash.fields) == ("hi", WHEN, {"@version": "1"})


def test_json_within_syslog() -> None:
    entry = parse_line(
        'Mar  5 07:08:09 reg registry[5]: {"level":"info","msg":"hi","time":"2024-03-05T07:08:09Z"}'
    )
    assert (entry.form, entry.message, entry.time, entry.pid) == ("json", "hi", WHEN, 5)


def test_access_lines_stand_between() -> None:
    line = '10.0.0.9 - - [05/Mar/2024:08:08:09 +0100] "GET /v2/ HTTP/1.1" 401 87 "" "curl/7.88.1"'
    entry = parse_line(line)
    assert (entry.form, entry.time, entry.message) == ("access", WHEN, line)
    assert entry.fields == {
        "remoteaddr": "10.0.0.9",
        "method": "GET",
        "uri": "/v2/",
        "protocol": "HTTP/1.1",
        "status": "401",
        "written": "87",
        "referer": "",
        "useragent": "curl/7.88.1",
    }


def test_engine_lines_that_the_second_field_report_pairs_with_it() -> None:
    entry = parse_line(
        '2024-03-05T07:08:09.370 controller-0 dockerd[98916]: info time="2024-03-05T07:08:09.370167513Z" '
        'level=error msg="Upload failed: unauthorized: authentication required"'
    )
    assert entry.program == "dockerd"
    assert (entry.level, entry.message) == ("error", "Upload failed: unauthorized: authentication required")


def test_reason_of_a_refusal_with_quotes_in_it() -> None:
    entry = parse_line(
        'time="2024-03-05T07:08:09Z" level=info msg="token from untrusted issuer: \\"someone\\""'
    )
    assert entry.message == 'token from untrusted issuer: "someone"'


@pytest.mark.parametrize(
    "line",
    [
        "configuration error: open /nowhere: no such file",
        "panic: runtime error",
        'level=warning msg="cut in the midd',  # a killed process
        "level=warning",  # pairs without a message
        '{"level": "info"',
        '{"level": "info"}',
        "[1, 2]",
        '"msg"',
        "\x1b[36mINFO\x1b[0m",
    ],
)
def test_what_has_no_known_form_is_kept_as_it_is(line: str) -> None:
    entry = parse_line(line)
    assert (entry.form, entry.message, entry.raw, entry.fields) == ("plain", line, line, {})


def test_a_plain_line_within_syslog_keeps_its_frame() -> None:
    entry = parse_line("2024-03-05T07:08:09Z controller-0 registry[4]: err panic: oh")
    assert (entry.form, entry.message, entry.level) == ("plain", "panic: oh", "err")
    assert (entry.host, entry.pid, entry.time) == ("controller-0", 4, WHEN)


def test_a_time_without_a_zone_is_not_guessed() -> None:
    assert parse_line("2024-03-05T07:08:09.251 controller-0 registry[4]: hello").time is None
    assert parse_line('time="yesterday" level=info msg=x').time is None


def test_blank_lines_are_no_entries() -> None:
    assert [entry.message for entry in parse_log(["", "  \n", 'msg="a"\n', "\r\n"])] == ["a"]


# -- a writer of our own -----------------------------------------------------------------------------------

PLAIN_LETTERS = set(string.ascii_letters + string.digits + "-._/@^+")
SHORT = {"\a": r"\a", "\b": r"\b", "\f": r"\f", "\n": r"\n", "\r": r"\r", "\t": r"\t", "\v": r"\v"}


def go_quoted(text: str) -> str:
    """Quote as Go's %q does."""
    out = []
    for letter in text:
        if letter in '"\\':
            out.append(f"\\{letter}")
        elif letter in SHORT:
            out.append(SHORT[letter])
        elif letter.isprintable():
            out.append(letter)
        elif ord(letter) < 0x80:
            out.append(f"\\x{ord(letter):02x}")
        elif ord(letter) < 0x10000:
            out.append(f"\\u{ord(letter):04x}")
        else:
            out.append(f"\\U{ord(letter):08x}")
    return '"' + "".join(out) + '"'


def logrus(pairs: dict[str, str]) -> str:
    """Write pairs as logrus' text formatter does: only what needs it is quoted."""
    return " ".join(
        f"{key}={value if set(value) <= PLAIN_LETTERS else go_quoted(value)}" for key, value in pairs.items()
    )


texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=40)
keys = st.from_regex(r"[a-z][a-z.]{0,12}", fullmatch=True).filter(
    lambda key: key not in {"time", "level", "msg", "message"}
)


@given(texts.filter(bool), st.dictionaries(keys, texts, max_size=5))
@example('a "b" \\', {"k": "\\"})
@example("x", {"k": ""})
def test_what_logrus_writes_is_read_back(message: str, fields: dict[str, str]) -> None:
    stamped = {"time": "2024-03-05T07:08:09Z", "level": "info", "msg": message}
    for line in (logrus(stamped | fields), json.dumps(stamped | fields)):
        for prefix in ("", "2024-03-05T07:08:09.1 host registry[12]: info "):
            entry = parse_line(prefix + line)
            assert (entry.message, entry.level, entry.time, entry.fields) == (message, "info", WHEN, fields)


@given(st.text(max_size=200) | st.binary(max_size=200).map(lambda raw: raw.decode(errors="replace")))
@example("0001-01-01T00:00:00+23:59 a b: x")
@example('time="9999-12-31T23:59:59-23:59" msg=x')
@example('{"msg": 1}')
@example("[" * 5000)
@example('{"msg":' + "[" * 5000)
def test_no_line_is_an_error(line: str) -> None:
    entry = parse_line(line)
    assert entry.raw == line.rstrip("\r\n")
    json.dumps(dict(entry.fields))
