"""What a scenario will do to its card, as far as its text tells: it is read, and never run.

A scenario acts through the fixtures that it asks for. Where each use of them is a call that is known here,
the list of its acts is complete, and an upper bound: an error or a failed assertion ends it before. Every
other use is told as what cannot be known before.
"""

from __future__ import annotations

import ast
import builtins
import inspect
import textwrap
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

from harness.scenarios.driver_needs import require_update_attributes
from harness.scenarios.files import Call


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


#: Fixtures by which a card is acted upon.
ACTING: Final = frozenset({"flash", "card", "faults", "system", "cloud", "host", "lab", "hil", "request"})
#: What each of them may be asked without a write to a card's flash.
_MILD: Final[Mapping[str, frozenset[str]]] = {
    "flash": frozenset({"reset", "second_updater"}),
    "card": _words(
        "address identity locate name observe permitted report reset subject signal cancel_update "
        "require_update_attributes truth"
    ),
    "faults": frozenset({"arm", "undo", "undo_all"}),
    "host": frozenset({"list", "name", "read", "readlink"}),
}
#: Methods that flash, with the place of the image among their arguments.
_FLASHING: Final = {"flash", "upload"}
#: Functions that look at a card and do nothing to it.
_LOOKING: Final = (require_update_attributes, isinstance, print, repr, str)
#: Steps of files that have a control plane write to cards, whatever is owed to them then.
_WRITE_LATER: Final = frozenset({"update", "apply-strategy", "hold-strategy", "orchestrate"})
#: Steps of files that write to no card, or take other steps that are looked at themselves.
_MILD_STEPS: Final = _words(
    "reset runs fault second-updater end-faults report apply remove delete label unlabel enable-device "
    "boot lock unlock abort refused taken attempt disturb disturb-host at look subcloud card-of-cloud "
    "create-strategy abort-strategy wait-for-strategy delete-strategy restart-vim audit-cloud"
)
#: Functions by which a name can be reached past the text.
_BLIND: Final = frozenset({"locals", "globals", "vars", "eval", "exec", "__import__"})
_HANDED_ON: Final = "{} is handed to something else: what that does to a card is decided while it runs"
UNRESOLVED: Final = "which image is flashed is decided while it runs"


@dataclass(frozen=True, slots=True)
class Act:
    """One act that wears a card. ``image``: a recipe.

    ``way``: ``flash``, the fixture, which lists what is not permitted as NOT_APPLICABLE; ``driver`` of the
    card, which is refused; or the ``system`` that is given it.
    ``often``: whether it may come more than once. ``sure``: whether it is made if all goes well.
    """

    image: str
    way: str
    sure: bool = True
    often: bool = False


@dataclass(frozen=True, slots=True)
class Foreseen:
    """The acts of a scenario. ``unknown``: what cannot be known before it runs; without it, that is all."""

    acts: tuple[Act, ...] = ()
    unknown: tuple[str, ...] = ()


def foreseen_of_steps(calls: Iterable[Call]) -> Foreseen:
    """Return what the steps of a scenario file do; those within steps may be done, or not."""
    acts: list[Act] = []
    unknown: list[str] = []
    for call, sure in _with_inner(calls, True):
        name = call.step.name
        if call.step.fixture == "flash" and name == "flash":
            acts.append(Act(str(call.arguments["image"]), "flash", sure))
        elif call.step.fixture == "system" and name == "upload":
            acts.append(Act(str(call.arguments["image"]), "system", sure))
        elif name in _WRITE_LATER:
            unknown.append(f"{call.place}: {name} writes to cards what is owed to them then")
        elif call.step.fixture in ACTING and name not in _MILD_STEPS:
            unknown.append(f"{call.place}: what {name} does to a card is decided while it runs")
    return Foreseen(tuple(acts), tuple(dict.fromkeys(unknown)))


def _with_inner(calls: Iterable[Call], sure: bool) -> Iterator[tuple[Call, bool]]:
    for call in calls:
        yield call, sure
        for value in call.arguments.values():
            if isinstance(value, tuple) and value and isinstance(value[0], Call):
                yield from _with_inner(value, False)


def foreseen_of_function(
    function: Callable[..., Any], values: Mapping[str, Any], fixtures: Mapping[str, Any]
) -> Foreseen:
    """Return what a scenario in Python does.

    :param values: parameter -> the value that it has this time.
    :param fixtures: fixture that the scenario asks for, in whatever way -> what makes it, where the project
        has it itself; None where the harness has it.
    """
    unknown = [
        f"the fixture {name} is the scenario's own: what it does to a card is decided while it runs"
        for name, maker in fixtures.items()
        if maker is not None and ACTING & {name, *inspect.signature(maker).parameters}
    ]
    try:
        tree = ast.parse(textwrap.dedent(inspect.getsource(function))).body[0]
    except (OSError, TypeError, SyntaxError, IndexError):
        return Foreseen((), (*unknown, "its text cannot be read"))
    if not isinstance(tree, (ast.FunctionDef, ast.AsyncFunctionDef)):
        return Foreseen((), (*unknown, "its text is no function"))
    asked = ACTING & set(inspect.signature(function).parameters)
    own = set(inspect.signature(function).parameters) & {
        n for n, maker in fixtures.items() if maker is not None
    }
    bound = {n.id for n in ast.walk(tree) if isinstance(n, ast.Name) and not isinstance(n.ctx, ast.Load)}
    given = {name: value for name, value in values.items() if name not in bound}
    names = {n: value for n, value in getattr(function, "__globals__", {}).items() if n not in bound}
    reader = _Body(asked | (own - set(values)), given, names)
    for statement in tree.body:
        reader.visit(statement)
    return Foreseen(tuple(reader.acts), tuple(dict.fromkeys([*unknown, *reader.unknown])))


class _Body(ast.NodeVisitor):
    """Reads the body of one scenario. ``asked``: names in it by which a card may be acted upon."""

    def __init__(self, asked: Iterable[str], values: Mapping[str, Any], names: Mapping[str, Any]) -> None:
        self.acts: list[Act] = []
        self.unknown: list[str] = []
        self._asked = set(asked)
        self._values = values
        self._names = names
        self._sure, self._often = True, False

    # -- where something stands -----------------------------------------------------------------------

    def _within(self, node: ast.AST, *, sure: bool, often: bool) -> None:
        before = self._sure, self._often
        self._sure, self._often = self._sure and sure, self._often or often
        self.generic_visit(node)
        self._sure, self._often = before

    def visit_If(self, node: ast.If) -> None:
        """What is in it may be done, or not."""
        self._within(node, sure=False, often=False)

    visit_IfExp = visit_Try = visit_Match = visit_BoolOp = visit_If  # type: ignore[assignment]

    def visit_For(self, node: ast.For) -> None:
        """What is in it may be done never, or often."""
        self._within(node, sure=False, often=True)

    visit_While = visit_ListComp = visit_SetComp = visit_DictComp = visit_GeneratorExp = visit_For  # type: ignore[assignment]
    visit_FunctionDef = visit_Lambda = visit_AsyncFor = visit_ClassDef = visit_For  # type: ignore[assignment]

    # -- what is done ---------------------------------------------------------------------------------

    def visit_Call(self, node: ast.Call) -> None:
        """Take the calls that are known for what they are; their arguments are looked at in any case."""
        called = node.func
        if isinstance(called, ast.Name) and called.id == "flash" and "flash" in self._asked:
            self._flashed(node, "flash")
        elif isinstance(called, ast.Name) and self._named(called.id) in _LOOKING:
            self._visit_all(part for part in node.args if not isinstance(part, ast.Name))
            return
        elif (
            isinstance(called, ast.Attribute) and self._is(called.value, "card") and called.attr in _FLASHING
        ):
            self._flashed(node, "driver")
        elif isinstance(called, ast.Attribute) and self._of_system(called):
            self._asked_of_system(node, called)
        else:
            self.visit(called)
        self._visit_all([*node.args, *(keyword.value for keyword in node.keywords)])

    def _named(self, name: str) -> Any:
        return self._names.get(name, getattr(builtins, name, None))

    def _visit_all(self, nodes: Iterable[ast.AST]) -> None:
        for node in nodes:
            self.visit(node)

    def _flashed(self, node: ast.Call, way: str) -> None:
        image = self._image(node.args[0]) if node.args else None
        if image is None:
            self.unknown.append(UNRESOLVED)
        else:
            self.acts.append(Act(image, way, self._sure, self._often))

    def _of_system(self, called: ast.Attribute) -> bool:
        """Whether it is a method of a system, or of one that belongs to a cloud."""
        node: ast.AST = called.value
        while isinstance(node, (ast.Attribute, ast.Subscript)):
            node = node.value
        return isinstance(node, ast.Name) and node.id in {"system", "cloud"} & self._asked

    def _asked_of_system(self, node: ast.Call, called: ast.Attribute) -> None:
        if called.attr == "upload":
            image = self._image(node.args[0]) if node.args else None
            if image is not None:
                self.acts.append(Act(image, "system", self._sure, self._often))
        self._written_later()

    def _written_later(self) -> None:
        self.unknown.append(
            "the control plane writes to cards: which image to which card is decided while it runs"
        )

    # -- what else names them -------------------------------------------------------------------------

    def visit_Attribute(self, node: ast.Attribute) -> None:
        """Pass over what acts on no card."""
        value = node.value
        if isinstance(value, ast.Name) and value.id in self._asked:
            if node.attr not in _MILD.get(value.id, ()):
                self.visit(value)
        else:
            self.generic_visit(node)

    def visit_Name(self, node: ast.Name) -> None:
        """Tell of a fixture that is used in a way which is not known here."""
        if node.id in _BLIND:
            self.unknown.append(_HANDED_ON.format("all that it asks for"))
        if node.id not in self._asked:
            return
        if node.id in ("system", "cloud"):
            self._written_later()
        else:
            self.unknown.append(_HANDED_ON.format(node.id))

    # -- images ---------------------------------------------------------------------------------------

    def _is(self, node: ast.AST, name: str) -> bool:
        return isinstance(node, ast.Name) and node.id == name and name in self._asked

    def _image(self, node: ast.AST) -> str | None:
        """Return the recipe that an argument names; None where that is decided while it runs."""
        if isinstance(node, ast.Attribute) and node.attr == "data":
            node = node.value
        if isinstance(node, ast.Subscript) and isinstance(node.value, ast.Name) and node.value.id == "images":
            node = node.slice
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
            found = getattr(self._values.get(node.value.id), node.attr, None)
        elif isinstance(node, ast.Name):
            found = self._values.get(node.id, self._names.get(node.id))
        else:
            found = node.value if isinstance(node, ast.Constant) else None
        return found if isinstance(found, str) else None
