"""Imports point down: what `docs/architecture.md` says of the layers is held against every file."""

import ast
import re
from collections.abc import Iterator
from functools import cache
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PACKAGE = ROOT / "loaderbench"
WITHOUT_TORCH = {"records", "errors", "statistics", "diagnosis", "report", "search", "remedies"}
ONLY_STANDARD_LIBRARY = {"records", "errors"}


@cache
def layers() -> dict[str, int]:
    """Unit to layer, from the table in the documentation."""
    found: dict[str, int] = {}
    for line in (ROOT / "docs" / "architecture.md").read_text().splitlines():
        if match := re.match(r"\| (\d+) \| (.*?) \|", line):
            found |= {unit: int(match[1]) for unit in re.findall(r"`(\w+)(?:\.py|/)?`", match[2])}
    return found


@cache
def files() -> tuple[Path, ...]:
    return tuple(sorted(path for path in PACKAGE.rglob("*.py") if path != PACKAGE / "__init__.py"))


@cache
def statements(path: Path) -> tuple[ast.Import | ast.ImportFrom, ...]:
    """Every import anywhere in a file, inside functions too."""
    nodes = ast.walk(ast.parse(path.read_text()))
    return tuple(node for node in nodes if isinstance(node, ast.Import | ast.ImportFrom))


def unit_of(path: Path) -> str:
    return path.relative_to(PACKAGE).parts[0].removesuffix(".py")


def imports(path: Path) -> Iterator[str]:
    """Every module imported anywhere in a file."""
    for node in statements(path):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        else:
            assert node.level == 0, f"{path}: relative import"
            if node.module == "loaderbench":
                yield from (f"loaderbench.{alias.name}" for alias in node.names)
            else:
                yield node.module or ""


def test_every_unit_has_a_layer_and_every_layer_its_units() -> None:
    assert {unit_of(path) for path in files()} == set(layers())


def points_down(path: Path, name: str) -> bool:
    """Whether a file may import a module: all but the package's root and units of its own layer or above."""
    own, (package, *inside) = unit_of(path), name.split(".")
    if package != "loaderbench":
        return True
    level = layers().get(own, 0)
    return bool(inside) and (inside[0] == own or layers().get(inside[0], level) < level)


@pytest.mark.parametrize("unit", sorted({unit_of(path) for path in files()}))
def test_imports_point_down(unit: str) -> None:
    own = [path for path in files() if unit_of(path) == unit]
    upwards = [
        f"{path.relative_to(ROOT)} imports {name}"
        for path in own
        for name in imports(path)
        if not points_down(path, name)
    ]
    assert own
    assert upwards == []


@pytest.mark.parametrize(
    ("name", "may"),
    [
        ("loaderbench.records", True),
        ("loaderbench.store", True),
        ("torch.utils", True),
        ("loaderbench", False),
        ("loaderbench.report.html", False),
        ("loaderbench.commands", False),
        ("loaderbench.no_unit", False),
    ],
)
def test_an_import_points_down_where_the_layer_is_lower_or_the_unit_is_the_same(name: str, may: bool) -> None:
    assert points_down(PACKAGE / "store.py", name) is may


@pytest.mark.parametrize("unit", sorted(WITHOUT_TORCH))
def test_what_draws_a_report_needs_no_torch(unit: str) -> None:
    for path in (path for path in files() if unit_of(path) == unit):
        assert not {name.split(".")[0] for name in imports(path)} & {"torch", "torchvision"}, path


@pytest.mark.parametrize("unit", sorted(ONLY_STANDARD_LIBRARY))
def test_records_need_the_standard_library_only(unit: str) -> None:
    import sys

    names = {name for path in files() if unit_of(path) == unit for name in imports(path)}
    others = {name for name in names if not name.startswith(f"loaderbench.{unit}")}
    assert {name.split(".")[0] for name in others} <= set(sys.stdlib_module_names)


def test_no_imports_go_in_a_circle() -> None:
    """Those in functions and for type checkers alone count, too: a reader follows them all."""
    names = {module_of(path): path for path in PACKAGE.rglob("*.py")}
    graph = {name: {found for found in modules(path) if found in names} - {name} for name, path in names.items()}
    try:
        list(TopologicalSorter(graph).static_order())
    except CycleError as error:
        pytest.fail(" imports ".join(reversed(error.args[1])))


def module_of(path: Path) -> str:
    """The name by which a file is imported."""
    parts = path.relative_to(ROOT).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def modules(path: Path) -> Iterator[str]:
    """Every module of the package that a file imports: a name out of a package may be a module of it."""
    for node in statements(path):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            for alias in node.names:
                inner = f"{node.module}.{alias.name}"
                is_module = (ROOT / inner.replace(".", "/")).with_suffix(".py").is_file()
                yield inner if is_module else node.module
