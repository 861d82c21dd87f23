"""What the documentation names exists, and what exists is documented."""

from __future__ import annotations

import re
import runpy
import subprocess
import sys
from pathlib import Path

import pytest

from loaderbench.commands.app import app
from loaderbench.suite import load_suite

ROOT = Path(__file__).parents[1]
PAGES = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")])


def verbs() -> list[str]:
    return [command.callback.__name__ for command in app.registered_commands if command.callback]


@pytest.mark.parametrize("verb", verbs())
def test_every_command_is_in_the_readme(verb: str) -> None:
    assert f"`loaderbench {verb}" in (ROOT / "README.md").read_text()


def test_every_flag_of_run_is_documented() -> None:
    shown = subprocess.run(
        [sys.executable, "-m", "loaderbench", "run", "--help"], capture_output=True, text=True, check=True
    ).stdout
    flags = set(re.findall(r"(?<![\w-])(--?[a-zA-Z][\w-]*)", shown.split("Options:")[1])) - {"--help", "-P"}
    documented = (ROOT / "docs" / "command-line.md").read_text()
    assert {flag for flag in flags if f"`{flag}" not in documented} == set()


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links_and_files_named_in_a_page_exist(page: Path) -> None:
    text = page.read_text()
    for target in re.findall(r"\]\(([^)#:]+)(?:#[^)]*)?\)", text):
        assert (page.parent / target).exists(), target
    for name in re.findall(r"`((?:suites|benchmarks|docs|tests|examples|reports)/[\w./-]+\.\w+)`", text):
        assert (ROOT / name).exists(), name


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_python_in_a_page_compiles(page: Path) -> None:
    for code in re.findall(r"```python\n(.*?)```", page.read_text(), re.DOTALL):
        assert compile(code, str(page), "exec")


def test_the_page_of_each_remedy_is_made_from_its_docstring() -> None:
    written = {path.name: path.read_text() for path in (ROOT / "docs" / "remedies").glob("*.md")}
    pages = runpy.run_path(str(ROOT / "docs" / "remedy_pages.py"))["pages"]
    assert written == pages(), "uv run python docs/remedy_pages.py"


@pytest.mark.parametrize("suite", sorted((ROOT / "suites").glob("*.yaml")), ids=lambda path: path.name)
def test_every_suite_is_right_and_says_what_it_asks(suite: Path) -> None:
    loaded = load_suite(suite)
    assert loaded.suite.name == suite.stem
    assert suite.read_text().startswith("# ")


def test_the_readme_gives_the_two_commands_and_ci_runs_the_second() -> None:
    readme = (ROOT / "README.md").read_text()
    assert "pip install uv && uv run --no-dev loaderbench run suites/images.yaml" in readme
    assert "pip install uv && uv run pytest" in readme
    assert "uv run pytest" in (ROOT / ".ci" / "run").read_text()


def test_the_readme_quotes_the_committed_example() -> None:
    place = "reports/examples/two-cores"
    shown = subprocess.run(
        [sys.executable, "-m", "loaderbench", "show", place], cwd=ROOT, capture_output=True, text=True, check=True
    ).stdout
    assert shown.strip() in (ROOT / "README.md").read_text()


@pytest.mark.parametrize("example", sorted((ROOT / "reports" / "examples").iterdir()), ids=lambda path: path.name)
def test_a_committed_example_is_whole_and_names_no_path_of_the_machine_it_ran_on(example: Path) -> None:
    assert {"run.json", "report.html"} <= {path.name for path in example.iterdir()}
    assert not re.search(r"/(?:home|root|work|Users|tmp)/", (example / "run.json").read_text())


def test_every_kind_of_failure_is_explained() -> None:
    from loaderbench.diagnosis.failures import _KNOWN

    text = (ROOT / "docs" / "failures.md").read_text()
    assert [kind for kind, *_ in _KNOWN if f"`{kind}`" not in text] == []
