"""What `.ci/run` leaves out of one of its steps runs in another one, with the libraries that it uses."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
SCRIPT = (ROOT / ".ci" / "run").read_text(encoding="utf-8")
ALWAYS_INSTALLED = {"torch", "torchvision", "pyarrow", "triton", "axe_playwright_python"}
ASKS_FOR = re.compile(r"importorskip\(\"(\w+)")
EXPORTERS = "tests/exporters"

pytestmark = pytest.mark.skipif(shutil.which("bash") is None, reason="the script is one of bash")


def paths(array: str) -> list[str]:
    """The paths of an array of the script, without the names of tests."""
    found = re.search(rf"^{array}=\((.*?)^\)", SCRIPT, re.MULTILINE | re.DOTALL)
    assert found, array
    words = " ".join(line.partition("#")[0] for line in found[1].splitlines())
    expanded = subprocess.run(["bash", "-c", f"printf '%s\\n' {words}"], capture_output=True, text=True, check=True)
    return [path.partition("::")[0] for path in expanded.stdout.split()]


def with_libraries(path: Path) -> bool:
    """Whether a file runs where optional libraries are installed."""
    left_out = [ROOT / one for one in paths("use_no_loader")]
    places = [ROOT / one for one in (*paths("use_loaders"), *paths("use_frameworks"), EXPORTERS)]
    return path not in left_out and any(path.is_relative_to(place) for place in places)


def asked_for(path: Path) -> set[str]:
    """The optional libraries without which tests of a file are skipped."""
    return set(ASKS_FOR.findall(path.read_text(encoding="utf-8"))) - ALWAYS_INSTALLED


@pytest.mark.parametrize("array", ["use_loaders", "use_no_loader", "use_frameworks", "all_slow"])
def test_every_path_of_the_script_is_there(array: str) -> None:
    assert [path for path in paths(array) if not (ROOT / path).exists()] == []


def test_a_file_without_the_first_step_has_slow_tests_alone_and_runs_later() -> None:
    for path in map(ROOT.joinpath, paths("all_slow")):
        assert re.search(r"^pytestmark = .*mark\.slow", path.read_text(encoding="utf-8"), re.MULTILINE), path
        assert with_libraries(path), path


def test_a_file_whose_tests_ask_for_an_optional_library_runs_where_it_is_installed() -> None:
    files = [path for path in (ROOT / "tests").rglob("test_*.py") if path.parent.name != "gpu"]
    assert {str(path.relative_to(ROOT)) for path in files if asked_for(path) and not with_libraries(path)} == set()


def test_a_file_without_the_step_of_the_loaders_looks_for_no_library() -> None:
    for path in map(ROOT.joinpath, paths("use_no_loader")):
        assert asked_for(path) == set(), path
        assert not re.search(r"is_installed|find_spec|INSTALLED", path.read_text(encoding="utf-8")), path
