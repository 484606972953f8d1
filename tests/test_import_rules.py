"""Which package may import what, and what every module of the harness has in common; read from the source."""

import ast
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

PROJECT = Path(__file__).parents[1]
SOURCES = sorted((PROJECT / "harness").rglob("*.py"))
LONGEST_MODULE = 500
#: One that is longer does not fit on a screen.
LONGEST_FUNCTION = 60

#: package -> what else of the harness it may import. A package that is not listed may import anything but
#: the emulator.
ALLOWED: dict[str, set[str]] = {
    "errors": set(),
    "late_import": set(),
    "packages": {"errors"},
    "tls_trust": set(),
    "yaml_text": {"errors"},
    "images": {"errors", "judgement.values", "yaml_text"},
    "judgement": {"errors"},
    "inventory": {"errors", "yaml_text"},
    "record": {"errors", "judgement"},
    "hosts": {"errors", "judgement.values", "inventory", "late_import"},
    "leases": {
        "errors",
        "judgement.values",
        "inventory",
        "hosts",
        "store.kept",
        "store.opening",
        "store.place",
        "store.tables",
    },
    "health": {
        "errors",
        "judgement.values",
        "inventory",
        "hosts",
        "leases",
        "cards",
        "store.kept",
        "store.storable",
        "store.tables",
    },
    "cards": {"errors", "hosts", "images", "judgement", "record", "leases", "inventory"},
    "registry": {
        "errors",
        "packages",
        "tls_trust",
        "hosts",
        "judgement",
        "record",
        "inventory",
        "faults.watchdog",
    },
    "display_width": set(),
    "controlplane": {
        "errors",
        "display_width",
        "tls_trust",
        "hosts",
        "images",
        "judgement",
        "record",
        "inventory",
        "cards.interlock",
        "cards.update_count",
    },
    "recordings": {"errors", "hosts", "images", "judgement", "record", "cards"},
    "emulator": {
        "errors",
        "display_width",
        "images",
        "judgement.values",
        "late_import",
        "recordings.model",
        "recordings.kind",
    },
    "store": {"errors", "judgement", "record"},
    "report": {"errors", "judgement", "record", "inventory.placed"},
}
#: Nothing else outside the emulator may know that there is one (design rule 1).
MAY_IMPORT_EMULATOR = ("harness.emulator", "harness.lab", "harness.cli.emulator")
#: Bytes or records in, values out (design rule 4): what reaches network, clock or files is not imported.
PURE = ("harness.images", "harness.judgement")
IMPURE_MODULES = {
    "asyncio", "datetime", "docker", "fcntl", "glob", "http", "httpx", "logging", "mmap", "multiprocessing",
    "os", "paramiko", "pathlib", "pydantic", "random", "requests", "rich", "secrets", "select",
    "shutil", "signal", "socket", "sqlalchemy", "sqlite3", "ssl", "subprocess", "sys", "tempfile", "time",
    "tomllib", "typer", "urllib",
}  # fmt: skip
IMPURE_CALLS = {"open", "print", "input", "exec", "eval", "__import__"}
#: Only these packages may make something happen on a host (design rule 7).
MAY_PERMIT = ("harness.cards", "harness.registry", "harness.lab", "harness.controlplane")
PERMIT_MAKERS = {"Authority", "AUTHORITIES", "_seal", "_SECRET"}
#: Names that say nothing about why a module exists.
EMPTY_NAMES = {"utils", "util", "helpers", "helper", "common", "misc", "stuff"}


def module_name(path: Path) -> str:
    parts = path.relative_to(PROJECT).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def within(module: str, packages: tuple[str, ...] | set[str]) -> bool:
    return any(module == package or module.startswith(f"{package}.") for package in packages)


def imports_of(module: str, tree: ast.AST, *, is_package: bool) -> Iterator[tuple[int, str]]:
    """Yield line and full dotted name of everything that is imported, at any depth of the module."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from ((node.lineno, alias.name) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            origin = node.module or ""
            if node.level:
                above = module.split(".")[: len(module.split(".")) - node.level + is_package]
                origin = ".".join([*above, *([origin] if origin else [])])
            yield from ((node.lineno, f"{origin}.{alias.name}") for alias in node.names)


def docstring_nodes(tree: ast.AST) -> set[int]:
    """Return the ids of the constants that are docstrings."""
    owners = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
    return {
        id(node.body[0].value)
        for node in ast.walk(tree)
        if isinstance(node, owners) and node.body and isinstance(node.body[0], ast.Expr)
    }


def violations(module: str, source: str, *, is_package: bool = False) -> list[str]:
    """Return every rule that ``module`` breaks, with its line."""
    tree = ast.parse(source)
    imported = list(imports_of(module, tree, is_package=is_package))
    return [
        *broken_layers(module, imported),
        *broken_emulator_seam(module, tree, imported),
        *broken_purity(module, tree, imported),
        *broken_permits(module, tree, imported),
        *broken_form(module, source, tree),
    ]


def broken_layers(module: str, imported: list[tuple[int, str]]) -> Iterator[str]:
    package = module.split(".")[1] if "." in module else ""
    allowed = ALLOWED.get(package)
    if allowed is None:
        return
    own = {f"harness.{name}" for name in {package, *allowed}}
    for line, name in imported:
        if name.startswith("harness.") and name != "harness.__version__" and not within(name, own):
            yield f"{module}:{line}: {package} may not import {name}"


def broken_emulator_seam(module: str, tree: ast.AST, imported: list[tuple[int, str]]) -> Iterator[str]:
    if within(module, MAY_IMPORT_EMULATOR):
        return
    for line, name in imported:
        if within(name, ("harness.emulator",)):
            yield f"{module}:{line}: only {', '.join(MAY_IMPORT_EMULATOR)} may import the emulator"
    docstrings = docstring_nodes(tree)
    for node in ast.walk(tree):
        named = isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in docstrings
        if named and re.search(r"\bharness\.emulator\b", str(node.value)):
            yield f"{module}:{node.lineno}: names the emulator's module"


def broken_purity(module: str, tree: ast.AST, imported: list[tuple[int, str]]) -> Iterator[str]:
    if not within(module, PURE):
        return
    for line, name in imported:
        if name.split(".")[0] in IMPURE_MODULES:
            yield f"{module}:{line}: is pure and may not import {name}"
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in IMPURE_CALLS:
            yield f"{module}:{node.lineno}: is pure and may not call {node.func.id}()"


def broken_permits(module: str, tree: ast.AST, imported: list[tuple[int, str]]) -> Iterator[str]:
    if module == "harness.hosts.permits":
        return
    makers = {f"harness.hosts.permits.{name}" for name in PERMIT_MAKERS}
    for line, name in imported:
        if name in makers and (not within(module, MAY_PERMIT) or not name.endswith(".Authority")):
            yield f"{module}:{line}: may not import {name}"
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and node.attr in PERMIT_MAKERS:
            yield f"{module}:{node.lineno}: reaches for {node.attr}; import it, so that it is seen"
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "Authority":
            stated = [arg.value for arg in node.args if isinstance(arg, ast.Constant)]
            if stated != [module.split(".")[1]]:
                yield f"{module}:{node.lineno}: takes the authority of {stated} and is not that package"


def broken_form(module: str, source: str, tree: ast.Module) -> Iterator[str]:
    first = (ast.get_docstring(tree) or "").partition("\n")[0]
    if not first:
        yield f"{module}:1: has no docstring that says why it exists"
    length = len(source.splitlines())
    if length > LONGEST_MODULE:
        yield f"{module}:{LONGEST_MODULE}: is {length} lines long; {LONGEST_MODULE} are enough"
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            lines = (node.end_lineno or node.lineno) - node.lineno + 1
            if lines > LONGEST_FUNCTION:
                yield f"{module}:{node.lineno}: {node.name} is {lines} lines long; at most {LONGEST_FUNCTION}"
    if EMPTY_NAMES & set(module.split(".")[1:]):
        yield f"{module}:1: has a name that does not say what it is for"


@pytest.mark.parametrize("path", SOURCES, ids=module_name)
def test_module_keeps_the_rules(path: Path) -> None:
    found = violations(
        module_name(path), path.read_text(encoding="utf-8"), is_package=path.name == "__init__.py"
    )
    assert found == []


def test_all_modules_are_looked_at() -> None:
    assert {"harness.errors", "harness.hosts.permits", "harness.cli.inventory"} <= set(
        map(module_name, SOURCES)
    )


@pytest.mark.parametrize(
    ("module", "code", "said"),
    [
        (
            "harness.images.parse",
            "from harness.cards import truth",
            "images may not import harness.cards.truth",
        ),
        ("harness.images.parse", "from ..cards import truth", "images may not import harness.cards.truth"),
        ("harness.images.parse", "def f():\n    import harness.record.history", "images may not import"),
        ("harness.hosts.ssh", "from harness.judgement.records import Claim", "hosts may not import"),
        ("harness.errors", "import harness.images", "errors may not import"),
        (
            "harness.emulator.card.bmc",
            "from harness.images.facts import x\nimport harness.cards",
            "emulator may not",
        ),
        ("harness.plugin.fixtures", "from harness.emulator.card import Card", "may import the emulator"),
        (
            "harness.scenarios.table",
            "import importlib\nimportlib.import_module('harness.emulator.card')",
            "names the",
        ),
        ("harness.cli.run", "argv = ['-m', 'harness.emulator.serve']", "names the emulator's module"),
        ("harness.judgement.judge", "import time", "is pure and may not import time"),
        (
            "harness.judgement.checkers.flash",
            "from pathlib import Path",
            "is pure and may not import pathlib.Path",
        ),
        ("harness.images.parse", "data = open('x').read()", "is pure and may not call open()"),
        ("harness.plugin.operations", "from harness.hosts.permits import Authority", "may not import"),
        ("harness.cards.driver", "from harness.hosts.permits import _seal", "may not import"),
        (
            "harness.cards.driver",
            "import harness.hosts.permits as p\np.Authority('cards')",
            "reaches for Authority",
        ),
        (
            "harness.cards.driver",
            "from harness.hosts.permits import Authority\nAuthority('lab')",
            "authority of ['lab']",
        ),
        (
            "harness.cards.driver",
            "from harness.hosts.permits import Authority\nAuthority(name)",
            "takes the authority",
        ),
        ("harness.images.utils", "x = 1", "a name that does not say"),
        ("harness.images.layout", "x = 1\n" * 500, "is 501 lines long"),
        ("harness.images.layout", "def f():\n" + "    x = 1\n" * 60, "f is 61 lines long"),
    ],
)
def test_each_rule_catches_its_breach(module: str, code: str, said: str) -> None:
    found = violations(module, f'"""Why."""\n{code}')
    assert any(said in line for line in found), found


def test_module_without_docstring_is_caught() -> None:
    assert violations("harness.images.layout", "x = 1") == [
        "harness.images.layout:1: has no docstring that says why it exists"
    ]


@pytest.mark.parametrize(
    ("module", "code"),
    [
        ("harness.lab.running", "from harness.emulator.control import Bench\nx = 'harness.emulator.serve'"),
        ("harness.cli.emulator", "def f():\n    from harness.emulator.simulate import simulate"),
        ("harness.cards.driver", "from harness.hosts.permits import Authority\nAuthority('cards')"),
        ("harness.images.verify", "from concurrent.futures import ThreadPoolExecutor\nimport hashlib"),
        ("harness.plugin.fixtures", "def f():\n    'Not a use of harness.emulator.'"),
    ],
)
def test_rules_allow_what_the_design_allows(module: str, code: str) -> None:
    assert violations(module, f'"""Why."""\n{code}') == []


@pytest.mark.parametrize("module", ["harness.cli", "harness.plugin", "harness.judgement.records"])
def test_what_every_start_imports_is_light(module: str) -> None:
    heavy = [
        "allure",
        "cryptography",
        "docker",
        "httpx",
        "hypothesis",
        "paramiko",
        "pydantic",
        "pyudev",
        "rich",
        "ruamel.yaml",
        "sqlalchemy",
        "starlette",
        "uvicorn",
        "harness.emulator",
    ]
    # pytest itself may load some of them (rich, with its own plugins), so only the difference counts.
    probe = f"import sys, pytest; a = set(sys.modules); import {module}; print(*(set(sys.modules) - a))"
    done = subprocess.run(
        [sys.executable, "-c", probe], capture_output=True, text=True, cwd=PROJECT, timeout=60
    )
    assert done.returncode == 0, done.stderr
    assert set(done.stdout.split()) & set(heavy) == set()
