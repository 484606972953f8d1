"""What the emulated shell does not know it names, in words that nobody takes for a mistake of his own."""

import pytest

from harness.emulator.shell_syntax import ShellSyntaxError, parse


@pytest.mark.parametrize(
    ("line", "what"),
    [
        ("echo $((1 + 2))", "arithmetic is"),
        ('echo "$((1 + 2))"', "arithmetic is"),
        ("(( x ))", "arithmetic is"),
        ("case a in a) echo;; esac", "'case' is"),
        ("true; function f { true; }", "'function' is"),
        ("f() { true; }", "definitions of functions are"),
        ("f () { true; }", "definitions of functions are"),
        ("[[ -e /sys ]] && true", "'[[' is"),
        ("while read l; do echo $l; done < /etc/hostname", "a redirection behind 'while' is"),
        ("for i in a; do echo; done 2>/dev/null", "a redirection behind 'for' is"),
        ("if true; then true; fi > x", "a redirection behind 'if' is"),
        ("cat <<EOF\nx\nEOF", "here-documents are"),
        ("( " * 20_000 + "true" + " )" * 20_000, "nesting as deep as this is"),
        ("if true; then " * 3_000 + "true;" + "fi;" * 3_000, "nesting as deep as this is"),
        ("echo " + "$( " * 5_000 + "true" + ")" * 5_000, "nesting as deep as this is"),
    ],
    ids=lambda value: value[:24],
)
def test_what_is_not_emulated_is_named(line: str, what: str) -> None:
    with pytest.raises(ShellSyntaxError) as caught:
        parse(line)
    assert str(caught.value) == f"Syntax error: {what} not supported by this emulated host"


@pytest.mark.parametrize(
    "line", ["( (true) )", "echo case; casex", "{ true; } > x", "(true) 2>&1", "echo $( (true) )", "ls '[['"]
)
def test_what_only_looks_like_it_is_taken(line: str) -> None:
    assert parse(line)
