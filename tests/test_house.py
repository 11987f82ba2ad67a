"""Does the house stand? Imports go down, optional packages stay out, files stay small, public things are described."""

import ast
import os
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

SOURCE = Path(__file__).parents[1] / "src"

FLOORS = (
    ("errors",),
    ("units", "formats"),
    ("ledger", "plan"),
    ("notation", "machines"),
    ("models", "tracing"),
    ("planning",),
    ("measuring",),
    ("training",),
    ("scaling",),
    ("lecture",),
    ("reporting",),
    ("__init__",),  # the front door: the public names
    ("app",),
    ("__main__",),
)
FLOOR_OF = {room: floor for floor, rooms in enumerate(FLOORS) for room in rooms}

OPTIONAL = {"torch", "scipy", "matplotlib", "fastapi", "transformers"}  # never at the top of a module
TORCH_ROOMS = {"tracing", "measuring", "training"}
NOT_ON_IMPORT = {"torch", "scipy", "matplotlib", "fastapi", "numpy"}
BANNED_NAMES = {"utils", "helpers", "common", "manager", "base"}
LONGEST_FILE = 500
LONGEST_FUNCTION = 80

Function = ast.FunctionDef | ast.AsyncFunctionDef


@dataclass(frozen=True)
class Module:
    """A module under src: its dotted name without `sixnd.`, its text and its tree."""

    name: str
    text: str
    tree: ast.Module

    @property
    def room(self) -> str:
        """The top-level file or folder that the module is in."""
        return self.name.split(".")[0]


@dataclass(frozen=True)
class Import:
    """One imported module: its full name, the line, and whether it is run when its module is imported."""

    target: str
    line: int
    at_top: bool
    typing_only: bool


def module(name: str, text: str) -> Module:
    """A module from its text."""
    return Module(name, text, ast.parse(text))


def modules() -> list[Module]:
    """Every module of the package."""
    found = []
    for path in sorted((SOURCE / "sixnd").rglob("*.py")):
        parts = path.relative_to(SOURCE / "sixnd").with_suffix("").parts
        name = ".".join(parts[:-1] if parts[-1] == "__init__" and len(parts) > 1 else parts)
        found.append(module(name, path.read_text(encoding="utf-8")))
    return found


# ------------------------------------------------------------------------------------------- what is imported


def imports(node: ast.AST, at_top: bool = True, typing_only: bool = False) -> Iterator[Import]:
    """Every import below a node; a class body and an `if` or `try` at the top are run on import, a function is not."""
    for child in ast.iter_child_nodes(node):
        inside = at_top and not isinstance(child, Function | ast.Lambda)
        typing = typing_only or (isinstance(child, ast.If) and ast.unparse(child.test) == "TYPE_CHECKING")
        for target in _targets(child):
            yield Import(target, child.lineno, inside, typing)
        yield from imports(child, inside, typing)


def _targets(node: ast.AST) -> list[str]:
    """The modules that one statement or call imports; `from sixnd import x` counts as `sixnd.x`."""
    if isinstance(node, ast.Import):
        return [alias.name for alias in node.names]
    if isinstance(node, ast.ImportFrom):
        origin = "." * node.level + (node.module or "")
        return [f"{origin}.{alias.name}" for alias in node.names] if origin == "sixnd" else [origin]
    if isinstance(node, ast.Call) and ast.unparse(node.func).split(".")[-1] in {"import_module", "__import__"}:
        return [arg.value for arg in node.args[:1] if isinstance(arg, ast.Constant) and isinstance(arg.value, str)]
    return []


def room_of(target: str) -> str | None:
    """The room that an import reaches; None outside the package; a name that is no room is behind the front door."""
    package, _, rest = target.partition(".")
    if package != "sixnd":
        return None
    room = rest.split(".")[0]
    return room if room in FLOOR_OF else "__init__"


# -------------------------------------------------------------------------------------------------- the rules


def floor_faults(module: Module) -> list[str]:
    """Rooms that are not in the table, and imports that go up, sideways or are relative."""
    if module.room not in FLOOR_OF:
        return [f"{module.name} is in no room of FLOORS"]
    faults = []
    for imported in imports(module.tree):
        target = room_of(imported.target)
        if imported.target.startswith("."):
            faults.append(f"{module.name}:{imported.line} imports {imported.target} relatively")
        elif target and target != module.room and FLOOR_OF[target] >= FLOOR_OF[module.room]:
            way = "sideways" if FLOOR_OF[target] == FLOOR_OF[module.room] else "upward"
            faults.append(f"{module.name}:{imported.line} imports {imported.target} {way}")
    return faults


def optional_faults(module: Module) -> list[str]:
    """Optional packages imported when a module is, and torch in a room that does without."""
    faults = []
    for imported in imports(module.tree):
        package = imported.target.split(".")[0]
        if package in OPTIONAL and imported.at_top and not imported.typing_only:
            faults.append(f"{module.name}:{imported.line} imports {package} at the top of the module")
        if package == "torch" and module.room not in TORCH_ROOMS:
            faults.append(f"{module.name}:{imported.line} imports torch outside {', '.join(sorted(TORCH_ROOMS))}")
    return faults


def size_faults(module: Module) -> list[str]:
    """Files and functions that are too long."""
    n_lines = len(module.text.splitlines())
    faults = [f"{module.name} has {n_lines} lines (at most {LONGEST_FILE})"] if n_lines > LONGEST_FILE else []
    for node in ast.walk(module.tree):
        if isinstance(node, Function):
            length = (node.end_lineno or node.lineno) - node.lineno + 1
            if length > LONGEST_FUNCTION:
                faults.append(f"{module.name}.{node.name} has {length} lines (at most {LONGEST_FUNCTION})")
    return faults


def name_faults(module: Module) -> list[str]:
    """Names that say nothing."""
    return [f"{module.name} is named {part}" for part in module.name.split(".") if part.strip("_") in BANNED_NAMES]


def docstring_faults(module: Module) -> list[str]:
    """The module, and public functions, classes and methods, without a docstring."""
    faults = [] if ast.get_docstring(module.tree) else [f"{module.name} has no docstring"]
    for path, node in _public(module.tree, module.name):
        if not ast.get_docstring(node):
            faults.append(f"{path} has no docstring")
    return faults


def _public(node: ast.AST, path: str) -> Iterator[tuple[str, Function | ast.ClassDef]]:
    """Public functions and classes at the top, and the public members of public classes; overloads are left out."""
    for child in ast.iter_child_nodes(node):
        if not isinstance(child, Function | ast.ClassDef) or child.name.startswith("_"):
            continue
        if any(ast.unparse(decorator).split(".")[-1] == "overload" for decorator in child.decorator_list):
            continue
        yield f"{path}.{child.name}", child
        if isinstance(child, ast.ClassDef):
            yield from _public(child, f"{path}.{child.name}")


RULES = [floor_faults, optional_faults, size_faults, name_faults, docstring_faults]


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.__name__)
def test_the_house_stands(rule):
    assert [fault for each in modules() for fault in rule(each)] == []


def test_the_house_was_looked_at():
    assert {"errors", "units", "formats.record"} <= {each.name for each in modules()}


def test_importing_the_package_imports_nothing_heavy():
    program = f"import sys, sixnd; print(sorted({NOT_ON_IMPORT!r} & set(sys.modules)))"
    environment = {**os.environ, "PYTHONPATH": str(SOURCE)}
    done = subprocess.run([sys.executable, "-c", program], env=environment, capture_output=True, text=True, check=False)
    assert done.stdout.strip() == "[]", done.stderr


# ------------------------------------------------------------------------------------- each rule can also fail

STANDS = [
    (floor_faults, "units", "from sixnd.errors import UnitError"),
    (floor_faults, "notation.parse", "from sixnd.notation.cost import f"),
    (floor_faults, "app.cli", "from sixnd import account"),
    (floor_faults, "__init__", "from sixnd.reporting import Report"),
    (floor_faults, "errors", "import difflib"),
    (optional_faults, "tracing.trace", "def f():\n    import torch"),
    (optional_faults, "tracing.trace", "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    import torch"),
    (optional_faults, "scaling.fit", "def f():\n    from scipy.optimize import minimize"),
    (size_faults, "units", "def f():\n" + "    x = 1\n" * 79),
    (size_faults, "units", "x = 1\n" * 500),
    (name_faults, "machines.catalogue", ""),
    (docstring_faults, "units", '"""Why?"""\ndef _f(): ...\nclass C:\n    """It."""\n    def __init__(self): ...'),
]

FALLS = [
    (floor_faults, "attic", "", "no room"),
    (floor_faults, "units", "from sixnd.ledger import Cost", "upward"),
    (floor_faults, "ledger", "import sixnd.app.cli", "upward"),
    (floor_faults, "ledger", "from sixnd import planning", "upward"),
    (floor_faults, "ledger", "from sixnd import account", "upward"),
    (floor_faults, "ledger", "import sixnd", "upward"),
    (floor_faults, "ledger", "def f():\n    from sixnd.models import x", "upward"),
    (floor_faults, "ledger", "import importlib\nimportlib.import_module('sixnd.models')", "upward"),
    (floor_faults, "notation.cost", "from sixnd.machines import Machine", "sideways"),
    (floor_faults, "units", "from sixnd.formats import Format", "sideways"),
    (floor_faults, "notation.cost", "from . import parse", "relatively"),
    (floor_faults, "notation.cost", "from ..machines import Machine", "relatively"),
    (optional_faults, "tracing.trace", "import torch", "at the top"),
    (optional_faults, "training.model", "try:\n    from torch import nn\nexcept ImportError:\n    pass", "at the top"),
    (optional_faults, "training.model", "if not TYPE_CHECKING:\n    import torch", "at the top"),
    (optional_faults, "reporting.figure", "import matplotlib.pyplot as plt", "at the top"),
    (optional_faults, "planning.fold", "def f():\n    import torch", "outside"),
    (optional_faults, "planning.fold", "if TYPE_CHECKING:\n    import torch", "outside"),
    (size_faults, "units", "def f():\n" + "    x = 1\n" * 80, "units.f has 81 lines"),
    (size_faults, "units", "x = 1\n" * 501, "501 lines"),
    (name_faults, "machines.utils", "", "utils"),
    (name_faults, "base.roofline", "", "base"),
    (docstring_faults, "units", "x = 1", "units has no docstring"),
    (docstring_faults, "units", '"""Why?"""\ndef f(): ...', "units.f has no"),
    (docstring_faults, "units", '"""Why?"""\nclass C: ...', "units.C has no"),
    (docstring_faults, "units", '"""Why?"""\nclass C:\n    """It."""\n    async def f(self): ...', "units.C.f has no"),
]


@pytest.mark.parametrize(("rule", "name", "text"), STANDS)
def test_a_sound_module_has_no_fault(rule, name, text):
    assert rule(module(name, text)) == []


@pytest.mark.parametrize(("rule", "name", "text", "words"), FALLS)
def test_a_rule_can_fail(rule, name, text, words):
    faults = rule(module(name, text))
    assert len(faults) == 1
    assert words in faults[0]
