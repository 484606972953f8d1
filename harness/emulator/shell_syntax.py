"""Turns the text of a command line into a tree, by the rules of the POSIX shell that remote commands use."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import Union


class ShellSyntaxError(Exception):
    """The text is not a command; the message is dash's own. Or it is one, of a kind that is not emulated."""


def _unsupported(what: str) -> ShellSyntaxError:
    """Return the error for what a real shell would take: nobody shall look for a mistake of his own."""
    return ShellSyntaxError(f"Syntax error: {what} not supported by this emulated host")


@dataclass(frozen=True, slots=True)
class Text:
    """Literal text. Quoted text is neither split nor taken for a pattern."""

    text: str
    quoted: bool = False


@dataclass(frozen=True, slots=True)
class Variable:
    """``$name``, or ``${name<operator>word}`` with one of the operators ``:-``, ``-``, ``:+``, ``+``."""

    name: str
    quoted: bool = False
    operator: str = ""
    word: Word = ()


@dataclass(frozen=True, slots=True)
class Substitution:
    """``$(script)`` or the same between backquotes."""

    script: Script
    quoted: bool = False


Word = tuple[Union[Text, Variable, Substitution], ...]


@dataclass(frozen=True, slots=True)
class Redirect:
    """``<fd><operator>target``, such as ``2>&1`` or ``> file``."""

    fd: int
    operator: str
    target: Word


@dataclass(frozen=True, slots=True)
class Simple:
    """Assignments, words and redirections; any of them may be missing."""

    assignments: tuple[tuple[str, Word], ...]
    words: tuple[Word, ...]
    redirects: tuple[Redirect, ...]


@dataclass(frozen=True, slots=True)
class Group:
    """``{ script; }``, or ``( script )`` in an environment of its own."""

    script: Script
    subshell: bool
    redirects: tuple[Redirect, ...]


@dataclass(frozen=True, slots=True)
class If:
    """``if condition; then body; elif ...; else otherwise; fi``."""

    branches: tuple[tuple[Script, Script], ...]
    otherwise: Script


@dataclass(frozen=True, slots=True)
class For:
    """``for name in words; do body; done``."""

    name: str
    words: tuple[Word, ...]
    body: Script


@dataclass(frozen=True, slots=True)
class While:
    """``while condition; do body; done``; ``until`` where ``wanted`` is False."""

    condition: Script
    body: Script
    wanted: bool


Command = Union[Simple, Group, If, For, While]


@dataclass(frozen=True, slots=True)
class Pipeline:
    """Commands joined by ``|``; ``negated`` by ``!``."""

    commands: tuple[Command, ...]
    negated: bool = False


@dataclass(frozen=True, slots=True)
class Chain:
    """Pipelines joined by ``&&`` and ``||`` (the operator stands before its pipeline; the first has none)."""

    links: tuple[tuple[str, Pipeline], ...]
    background: bool = False


Script = tuple[Chain, ...]

_OPERATORS = ("&&", "||", ";;", ">>", ">&", "<&", ";", "&", "|", "(", ")", "<", ">", "\n")
_RESERVED = frozenset(
    ("if", "then", "elif", "else", "fi", "for", "in", "do", "done", "while", "until", "{", "}", "!")
)
#: Reserved words of a real shell that this one does not know.
_UNSUPPORTED = frozenset(("case", "esac", "function", "select", "[[", "coproc"))
_SKIPPED = re.compile(r"(?:[ \t]|\\\n|#[^\n]*)+")
_OPERATOR = re.compile("|".join(map(re.escape, _OPERATORS)))
_RESERVED_FORM = re.compile(r"[a-z]+|[{}!]")
_PLAIN = re.compile(r"[^ \t\n;&|()<>'\"\\$`]+")
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_ASSIGNMENT = re.compile(r"([A-Za-z_][A-Za-z0-9_]*)=")
_SPECIAL = "@*#?$!-0123456789"
#: A real shell has no such limit, until its stack ends.
_DEEPEST = 40


@lru_cache(maxsize=64)  # the same reads are asked for again and again
def parse(text: str, depth: int = 0) -> Script:
    """Return the tree of ``text``. :param depth: how deep it stands within another one.

    :raises ShellSyntaxError: it is none.
    """
    parser = _Parser(text.replace("\0", ""), depth)
    script = parser.script(until=())
    parser.expect_end()
    return script


class _Parser:
    def __init__(self, text: str, depth: int = 0) -> None:
        self._text = text
        self._at = 0
        self._depth = depth

    # -- characters and tokens ------------------------------------------------------------------

    def _blank(self) -> None:
        """Skip blanks, line continuations and comments."""
        if (skipped := _SKIPPED.match(self._text, self._at)) is not None:
            self._at = skipped.end()

    def _operator(self) -> str:
        """Return the operator that comes next, empty where none does."""
        self._blank()
        match = _OPERATOR.match(self._text, self._at)
        return match[0] if match else ""

    def _reserved(self) -> str:
        """Return the reserved word that comes next, empty where none does."""
        self._blank()
        match = _RESERVED_FORM.match(self._text, self._at)
        if match is None or match[0] not in _RESERVED:
            return ""
        after = self._text[match.end() : match.end() + 1]
        return match[0] if after in ("", *" \t\n;&|()<>") else ""

    def _take(self, token: str) -> None:
        self._at += len(token)

    def _newlines(self) -> None:
        while self._operator() == "\n":
            self._take("\n")

    def _unexpected(self, expecting: str = "") -> ShellSyntaxError:
        token = self._reserved() or self._operator()
        if self._at >= len(self._text):
            token = "end of file"
        elif token == "\n":
            token = "newline"
        elif token:
            token = f'"{token}"'
        else:
            token = "word"
        hint = f' (expecting "{expecting}")' if expecting else ""
        return ShellSyntaxError(f"Syntax error: {token} unexpected{hint}")

    def _expect(self, word: str) -> None:
        self._newlines()
        if self._reserved() != word:
            raise self._unexpected(word)
        self._take(word)

    def expect_end(self) -> None:
        self._newlines()
        if self._at < len(self._text):
            raise self._unexpected()

    # -- commands -------------------------------------------------------------------------------

    def script(self, until: tuple[str, ...]) -> Script:
        """Parse chains up to one of the reserved words (or ``)``) in ``until``, which stays unread."""
        self._depth += 1
        if self._depth > _DEEPEST:
            raise _unsupported("nesting as deep as this is")
        chains: list[Chain] = []
        while True:
            self._newlines()
            if self._at >= len(self._text) or self._operator() == ")":
                break
            if self._reserved() in until and self._reserved():
                break
            links = self._links()
            separator = self._operator()
            if separator in (";", "&", "\n"):
                self._take(separator)
            chains.append(Chain(links, background=separator == "&"))
            if separator not in (";", "&", "\n"):
                break
        if until and not chains and self._operator() != ")":
            raise self._unexpected()
        self._depth -= 1
        return tuple(chains)

    def _links(self) -> tuple[tuple[str, Pipeline], ...]:
        links = [("", self._pipeline())]
        while (operator := self._operator()) in ("&&", "||"):
            self._take(operator)
            self._newlines()
            links.append((operator, self._pipeline()))
        return tuple(links)

    def _pipeline(self) -> Pipeline:
        negated = self._reserved() == "!"
        if negated:
            self._take("!")
        commands = [self._command()]
        while self._operator() == "|":
            self._take("|")
            self._newlines()
            commands.append(self._command())
        return Pipeline(tuple(commands), negated)

    def _command(self) -> Command:
        if self._operator() == "(":
            if self._text.startswith("((", self._at):
                raise _unsupported("arithmetic is")
            self._take("(")
            script = self.script(until=("",))
            if self._operator() != ")":
                raise self._unexpected(")")
            self._take(")")
            return Group(script, True, self._redirects())
        compound: dict[str, Callable[[], Command]] = {
            "{": self._group,
            "if": self._if,
            "for": self._for,
            "while": lambda: self._while(True),
            "until": lambda: self._while(False),
        }
        word = self._reserved()
        if word in compound:
            self._take(word)
            command = compound[word]()
            if word != "{" and self._redirect() is not None:
                raise _unsupported(f"a redirection behind {word!r} is")
            return command
        if word:
            raise self._unexpected()
        unknown = re.compile(r"[a-z]+(?=[\s;&|()<>]|$)|\[\[").match(self._text, self._at)
        if unknown is not None and unknown[0] in _UNSUPPORTED:
            raise _unsupported(f"{unknown[0]!r} is")
        return self._simple()

    def _group(self) -> Group:
        script = self.script(until=("}",))
        self._expect("}")
        return Group(script, False, self._redirects())

    def _if(self) -> If:
        branches: list[tuple[Script, Script]] = []
        otherwise: Script = ()
        while True:
            condition = self.script(until=("then",))
            self._expect("then")
            branches.append((condition, self.script(until=("elif", "else", "fi"))))
            if self._reserved() != "elif":
                break
            self._take("elif")
        if self._reserved() == "else":
            self._take("else")
            otherwise = self.script(until=("fi",))
        self._expect("fi")
        return If(tuple(branches), otherwise)

    def _for(self) -> For:
        self._blank()
        match = _NAME.match(self._text, self._at)
        if match is None:
            raise ShellSyntaxError("Syntax error: Bad for loop variable")
        self._take(match[0])
        self._expect("in")
        words: list[Word] = []
        while not self._operator() and self._at < len(self._text):
            words.append(self._word())
        separator = self._operator()
        if separator not in (";", "\n"):
            raise self._unexpected()
        self._take(separator)
        self._expect("do")
        body = self.script(until=("done",))
        self._expect("done")
        return For(match[0], tuple(words), body)

    def _while(self, wanted: bool) -> While:
        condition = self.script(until=("do",))
        self._expect("do")
        body = self.script(until=("done",))
        self._expect("done")
        return While(condition, body, wanted)

    def _redirects(self) -> tuple[Redirect, ...]:
        found: list[Redirect] = []
        while (redirect := self._redirect()) is not None:
            found.append(redirect)
        return tuple(found)

    def _redirect(self) -> Redirect | None:
        self._blank()
        match = re.compile(r"([0-9]?)(>>|>&|<&|>\||<|>)").match(self._text, self._at)
        if match is None:
            return None
        if self._text.startswith("<<", match.start(2)):
            raise _unsupported("here-documents are")
        self._take(match[0])
        self._blank()
        target = self._word()
        if not target:
            raise self._unexpected()
        default = 0 if match[2].startswith("<") else 1
        return Redirect(int(match[1] or default), match[2].replace(">|", ">"), target)

    def _simple(self) -> Simple:
        assignments: list[tuple[str, Word]] = []
        words: list[Word] = []
        redirects: list[Redirect] = []
        while True:
            redirect = self._redirect()
            if redirect is not None:
                redirects.append(redirect)
                continue
            if self._operator() or self._at >= len(self._text):
                break
            assignment = None if words else _ASSIGNMENT.match(self._text, self._at)
            if assignment:
                self._take(assignment[0])
                assignments.append((assignment[1], self._word()))
            else:
                words.append(self._word())
        if not (assignments or words or redirects):
            raise self._unexpected()
        if len(words) == 1 and not redirects and self._text[self._at - 1 :].startswith("()", 1):
            raise _unsupported("definitions of functions are")
        return Simple(tuple(assignments), tuple(words), tuple(redirects))

    # -- words ----------------------------------------------------------------------------------

    def _word(self) -> Word:
        """Parse one word up to an unquoted blank or operator; empty where none begins here."""
        parts: list[Text | Variable | Substitution] = []
        while self._at < len(self._text):
            character = self._text[self._at]
            if character in " \t\n;&|()<>":
                break
            if character == "'":
                end = self._text.find("'", self._at + 1)
                if end < 0:
                    raise ShellSyntaxError("Syntax error: Unterminated quoted string")
                parts.append(Text(self._text[self._at + 1 : end], quoted=True))
                self._at = end + 1
            elif character == '"':
                self._at += 1
                parts.extend(self._double_quoted())
            elif character == "\\":
                following = self._text[self._at + 1 : self._at + 2]
                if following != "\n":
                    parts.append(Text(following or "\\", quoted=True))
                self._at += 2
            elif character in "$`":
                parts.append(self._expansion(quoted=False))
            else:
                match = _PLAIN.match(self._text, self._at)
                assert match is not None
                parts.append(Text(match[0]))
                self._at = match.end()
        return tuple(parts)

    def _double_quoted(self) -> Word:
        parts: list[Text | Variable | Substitution] = [Text("", quoted=True)]
        while True:
            if self._at >= len(self._text):
                raise ShellSyntaxError("Syntax error: Unterminated quoted string")
            character = self._text[self._at]
            if character == '"':
                self._at += 1
                return tuple(parts)
            if character in "$`":
                parts.append(self._expansion(quoted=True))
            elif character == "\\" and self._text[self._at + 1 : self._at + 2] in tuple('$`"\\\n'):
                following = self._text[self._at + 1]
                parts.append(Text("" if following == "\n" else following, quoted=True))
                self._at += 2
            else:
                parts.append(Text(character, quoted=True))
                self._at += 1

    def _expansion(self, *, quoted: bool) -> Text | Variable | Substitution:
        if self._text[self._at] == "`":
            end = self._text.find("`", self._at + 1)
            if end < 0:
                raise ShellSyntaxError("Syntax error: EOF in backquote substitution")
            inner = self._text[self._at + 1 : end]
            self._at = end + 1
            return Substitution(parse(inner, self._depth), quoted)
        self._at += 1
        if self._text.startswith("((", self._at):
            raise _unsupported("arithmetic is")
        if self._text.startswith("(", self._at):
            self._at += 1
            script = self.script(until=())
            if self._operator() != ")":
                raise self._unexpected(")")
            self._take(")")
            return Substitution(script, quoted)
        if self._text.startswith("{", self._at):
            return self._braced(quoted)
        match = _NAME.match(self._text, self._at)
        if match:
            self._take(match[0])
            return Variable(match[0], quoted)
        special = self._text[self._at : self._at + 1]
        if special and special in _SPECIAL:
            self._at += 1
            return Variable(special, quoted)
        return Text("$", quoted)

    def _braced(self, quoted: bool) -> Variable:
        match = re.compile(r"\{([A-Za-z_]\w*|[@*#?$!0-9-])(:?[-+])?").match(self._text, self._at)
        if match is None:
            raise ShellSyntaxError("Bad substitution")
        self._at = match.end()
        end = self._text.find("}", self._at)
        if end < 0:
            raise ShellSyntaxError('Syntax error: end of file unexpected (expecting "}")')
        inner = self._text[self._at : end]
        if inner and not match[2]:
            raise ShellSyntaxError("Bad substitution")
        word = _Parser(inner, self._depth)._double_quoted_text() if inner else ()
        self._at = end + 1
        return Variable(match[1], quoted, match[2] or "", word)

    def _double_quoted_text(self) -> Word:
        """The word after an operator of ``${...}``, read as if between double quotes."""
        self._text += '"'
        return self._double_quoted()


def only_command(script: Script) -> Simple | None:
    """Return the one simple command that ``script`` consists of."""
    if len(script) != 1 or script[0].background or len(script[0].links) != 1:
        return None
    pipeline = script[0].links[0][1]
    if pipeline.negated or len(pipeline.commands) != 1 or not isinstance(pipeline.commands[0], Simple):
        return None
    return pipeline.commands[0]


def substitutes(command: Simple) -> bool:
    """Return whether an assignment of ``command`` runs another one."""
    return any(isinstance(part, Substitution) for _, word in command.assignments for part in word)
