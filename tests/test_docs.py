"""What the documentation names exists, and what exists is documented."""

from __future__ import annotations

import gzip
import json
import re
import runpy
import shlex
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import get_args

import pytest
import typer
from command_line import Cli
from prose import code_of_markdown
from ruamel.yaml import YAML

from loaderbench.commands.app import app
from loaderbench.diagnosis.cause import find_cause
from loaderbench.diagnosis.facts import Facts
from loaderbench.records import Bound, Confidence, Limit, RunRecord, Stage, Verdict, WaitParts, WorkerStates
from loaderbench.store import read_run
from loaderbench.suite import Suite, load_suite

ROOT = Path(__file__).parents[1]
PAGES = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md"), *(ROOT / "examples").rglob("*.md")])


_BEFORE = r"(?:^|&& |srun |[\"`]|\$ )(?:\S+=\S+ )*(?:taskset \S+ \S+ )?(?:uv run (?:--\S+ )*)?"
COMMAND = re.compile(_BEFORE + r"loaderbench((?: [^`\n&|\"]*)?)", re.MULTILINE)
"""A command where a page names one, in a line of code or in a block; what follows `&` or `|` is another's."""
WORDS = {"bound": get_args(Bound), "stage": get_args(Stage), "limit": get_args(Limit)}
VERDICTS = [f"{kind}-{word}" for kind, words in WORDS.items() for word in words]


def commands(text: str) -> list[list[str]]:
    """The arguments of each `loaderbench` command of a page, without what brackets mark as optional."""
    pieces = [code for language, code in code_of_markdown(text) if language in ("", "console", "bash", "inline")]
    found = [arguments for piece in pieces for arguments in COMMAND.findall(piece.replace("\\\n", " "))]
    return [shlex.split(re.sub(r"\[[^\]]*\]", "", one), comments=True) for one in found if one.strip()]


def verbs() -> list[str]:
    return [command.callback.__name__ for command in app.registered_commands if command.callback]


@pytest.mark.parametrize("verb", verbs())
def test_every_command_is_in_the_readme(verb: str) -> None:
    assert f"`loaderbench {verb}" in (ROOT / "README.md").read_text()


def flags_of(verb: str) -> set[str]:
    """What `--help` of a command lists, without itself."""
    group = typer.main.get_command(app)
    command = group.get_command(group.make_context("loaderbench", [verb], resilient_parsing=True), verb)
    return {flag for one in command.params if one.param_type_name == "option" for flag in one.opts} - {"--help"}


def documented_flags(verb: str) -> set[str]:
    """Those that the reference has for a command: `run` has a table, each other one a row of the next table."""
    page = (ROOT / "docs" / "reference" / "command-line.md").read_text()
    of_run, others = page.split("\n## Flags of `run`\n")[1].split("\n## Flags of other commands\n")
    rows = of_run if verb == "run" else re.search(rf"^\| `{verb}` \|.*$", others, re.MULTILINE)[0]
    return set(re.findall(r"`(--?[a-zA-Z][\w-]*)", rows))


@pytest.mark.parametrize("verb", verbs())
def test_every_flag_of_a_command_is_documented_and_no_other(verb: str) -> None:
    assert documented_flags(verb) == flags_of(verb)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links_and_files_named_in_a_page_exist(page: Path) -> None:
    text = page.read_text()
    for target in re.findall(r"\]\(([^)#:]+)(?:#[^)]*)?\)", text):
        assert (page.parent / target).exists(), target
    for name in re.findall(r"`((?:suites|benchmarks|docs|tests|examples|reports)/[\w./-]+\.\w+)`", text):
        assert (ROOT / name).exists(), name


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_every_command_in_a_page_has_the_flags_that_it_names(page: Path) -> None:
    found = commands(page.read_text())
    assert parsed_verbs(found) == [arguments[0] for arguments in found]


def test_every_command_of_the_workflow_has_the_flags_that_it_names() -> None:
    workflow = YAML(typ="safe").load(ROOT / "examples" / "ci" / "loader.yml")
    steps = [step["run"] for job in workflow["jobs"].values() for step in job["steps"] if "run" in step]
    found = commands(
        "\n".join(f"```bash\n{step}\n```\n" for step in steps)
        .replace('"$SUITE"', "SUITE")
        .replace('"origin/$GITHUB_BASE_REF"', "REF")
    )
    assert [arguments[:2] for arguments in found] == [["ab", "SUITE"]]
    assert parsed_verbs(found) == ["ab"]


def parsed_verbs(found: list[list[str]]) -> list[str]:
    """Parse commands as the command line does and return their verbs; raises if a command has no such flag."""
    group = typer.main.get_command(app)
    verbs = []
    for written in found:
        arguments = ["1" if one == "PID" else one for one in written]
        if arguments[0].startswith("-"):
            verbs.append(arguments[0])
            continue
        context = group.make_context("loaderbench", arguments[:1], resilient_parsing=True)
        command = group.get_command(context, arguments[0])
        assert command is not None, f"there is no command {arguments[0]}"
        alone = not arguments[1:]  # a verb by itself names the command
        parsed = command.make_context(arguments[0], arguments[1:], parent=context, resilient_parsing=alone)
        verbs.append(str(parsed.command.name))
    return verbs


def test_a_flag_that_is_not_there_is_noticed_in_each_form_of_a_command() -> None:
    block = "A=1 uv run --no-dev loaderbench show RUN --nope && loaderbench check X"
    text = f"Use `loaderbench run SUITE --nothing`.\n\n```\n{block}\n```\n"
    assert commands(text) == [["run", "SUITE", "--nothing"], ["show", "RUN", "--nope"], ["check", "X"]]


def test_the_outputs_that_pages_quote_are_what_is_printed_today() -> None:
    quoted = runpy.run_path(str(ROOT / "docs" / "quoted_outputs.py"))
    pages = quoted["pages"]()
    assert pages, "no page quotes an output"
    for page in pages:
        assert page.read_text() == quoted["filled"](page.read_text()), "make docs-outputs"


def test_a_quoted_output_that_differs_is_filled_in() -> None:
    filled = runpy.run_path(str(ROOT / "docs" / "quoted_outputs.py"))["filled"]
    text = "<!-- output: loaderbench --version -->\n\n```text\nan older one\n```\n\nMore.\n"
    assert re.fullmatch(r"<!-- .* -->\n\n```text\nloaderbench \d+\.\d+\.\d+\n```\n\nMore.\n", filled(text))


def test_every_verdict_has_a_page_and_no_page_is_of_another() -> None:
    pages = {path.stem for path in (ROOT / "docs" / "reference" / "verdicts").glob("*.md")} - {"index"}
    assert pages == set(VERDICTS)


@pytest.mark.parametrize("verdict", VERDICTS)
def test_the_page_of_a_verdict_says_what_it_means_how_to_fix_it_and_how_to_confirm_it(verdict: str) -> None:
    folder = ROOT / "docs" / "reference" / "verdicts"
    headings = re.findall(r"^## (.+)$", (folder / f"{verdict}.md").read_text(), re.MULTILINE)
    assert headings == ["Meaning", "What it looks like", "Fix", "Confirm"]
    assert f"({verdict}.md)" in (folder / "index.md").read_text()
    assert f"reference/verdicts/{verdict}.md" in (ROOT / "mkdocs.yml").read_text()


PARTS = dict.fromkeys(("not_begun_s", "making_s", "order_s", "transport_s", "main_process_s"), 0.0)
STATES = WorkerStates(on_cpu_share=0.9, run_queue_share=0.0, blocked_share=0.1, allowed_cpus=2)
QUEUE = replace(STATES, on_cpu_share=0.5, run_queue_share=0.5, blocked_share=0.0, runnable_threads=8.0)
STORAGE = replace(STATES, on_cpu_share=0.1, blocked_share=0.9, blocked_on={"device": 1.0})
HALF = Facts(
    workers=2,
    cpus=2,
    own_cpus=2.0,
    cpu_s={"decode": 1.0, "transform": 1.0},
    wall_s={"decode": 1.0, "transform": 1.0},
    loads=STATES,
    main=STATES,
    idle_share=0.0,
)
WAITING = replace(HALF, loads=STORAGE, wall_s={"decode": 9.0}, own_cpus=0.2)
CAUSES: dict[Limit, Facts] = {
    "cpu": HALF,
    "workers": replace(HALF, workers=1, own_cpus=1.0),
    "oversubscription": replace(HALF, loads=QUEUE),
    "quota": replace(HALF, throttled_share=0.5),
    "neighbors": replace(HALF, own_cpus=0.7, idle_cpus=0.0, others_cpus=1.3),
    "storage_latency": WAITING,
    "storage_bandwidth": replace(WAITING, bytes_share=0.9),
    "lock": replace(WAITING, loads=replace(STORAGE, blocked_on={"lock": 1.0})),
    "order": replace(HALF, parts=WaitParts(batches=9, **{**PARTS, "order_s": 1.0})),
    "imbalance": replace(
        HALF,
        loads=replace(STATES, on_cpu_share=0.5, blocked_share=0.5),
        idle_share=0.5,
        parts=WaitParts(batches=9, **{**PARTS, "making_s": 1.0}),
    ),
    "startup": replace(HALF, startup_s=1.0, startup_share=0.6),
    "memory": replace(HALF, cpu_s={"decode": 1.0}, loads=replace(STATES, system_share=0.9, minor_faults_per_s=4e6)),
}


@pytest.mark.parametrize("limit", CAUSES)
def test_the_page_of_a_limit_shows_the_line_that_a_terminal_prints_for_it(limit: Limit) -> None:
    cause = find_cause(CAUSES[limit])
    assert cause is not None
    assert cause.limit == limit
    said = cause.clause
    confidence: Confidence = "low" if limit == "neighbors" else "high"
    verdict = Verdict(bound="input", stage="decode", limit=limit, headline=said, evidence=(), confidence=confidence)
    assert f"\n{verdict}\n" in (ROOT / "docs" / "reference" / "verdicts" / f"limit-{limit}.md").read_text()


def test_every_limit_that_a_rule_names_has_its_line() -> None:
    assert set(CAUSES) == set(get_args(Limit)) - {"none"}  # which is of no wait


def test_every_field_of_a_run_is_in_its_reference() -> None:
    page = (ROOT / "docs" / "reference" / "run-json.md").read_text()
    assert [name for name in RunRecord.__dataclass_fields__ if f"`{name}`" not in page] == []


def test_every_key_of_a_suite_is_in_its_reference(cli: Cli, tmp_path: Path) -> None:
    page = (ROOT / "docs" / "reference" / "suite.md").read_text()
    schema = json.loads(cli("schema", "suite").stdout)
    known = {name for part in (schema, *schema["$defs"].values()) for name in part.get("properties", {})}
    inside_values = {"images", "like", "seed"}  # of `generate`, which is one value of the page
    missing = [name for name in known - inside_values if not re.search(rf"`(?:\w+\.)?{name}[`.]", page)]
    assert missing == []


def parts_of_suites() -> list[tuple[str, str]]:
    """Every YAML block of the docs whose keys are those of a suite, with the name of its page."""
    blocks = [
        (page.stem, code)
        for page in sorted((ROOT / "docs").rglob("*.md"))
        for language, code in code_of_markdown(page.read_text())
        if language == "yaml"
    ]
    return [(page, code) for page, code in blocks if set(YAML(typ="safe").load(code)) <= set(Suite.model_fields)]


@pytest.mark.parametrize(("page", "code"), parts_of_suites())
def test_a_part_of_a_suite_in_a_page_is_right(page: str, code: str, tmp_path: Path) -> None:
    (tmp_path / "part.yaml").write_text(code)
    written = set(YAML(typ="safe").load(code))
    assert written <= load_suite(tmp_path / "part.yaml").suite.model_fields_set


def test_the_parts_of_suites_in_the_docs_are_found() -> None:
    assert {"one-gpu", "your-own-dataset", "suite"} <= {page for page, _ in parts_of_suites()}


@pytest.mark.slow
def test_the_steps_of_the_tutorial_on_datasets_lead_to_a_report(cli: Cli, tmp_path: Path) -> None:
    text = (ROOT / "docs" / "tutorials" / "your-own-dataset.md").read_text()
    for name, content in re.findall(r"Create `([^`]+)`:\n\n```\w+\n(.*?)```", text, re.DOTALL):
        (tmp_path / name).write_text(content)
    steps = re.findall(r"^\$ loaderbench (.+)$", text, re.MULTILINE)
    quick = {"run": ["--rounds", "1", "--seconds", "0.05", "--no-verify", "-P", "num_workers=0"], "photos": []}
    for step in map(shlex.split, steps):
        done = cli(*step, *quick.get(step[0], []))
        assert done.returncode == 0, done.stderr
    assert (tmp_path / "mine" / "report.html").is_file()


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_python_in_a_page_compiles(page: Path) -> None:
    for code in re.findall(r"```python\n(.*?)```", page.read_text(), re.DOTALL):
        assert compile(code, str(page), "exec")


def test_the_page_of_each_remedy_is_made_from_its_docstring() -> None:
    written = {path.name: path.read_text() for path in (ROOT / "docs" / "reference" / "fixes").glob("*.md")}
    pages = runpy.run_path(str(ROOT / "docs" / "remedy_pages.py"))["pages"]
    assert written == pages(), "uv run python docs/remedy_pages.py"


def test_every_fix_of_the_recorded_runs_has_a_page() -> None:
    pages = {path.stem for path in (ROOT / "docs" / "reference" / "fixes").glob("*.md")}
    recorded = [json.loads(gzip.decompress(path.read_bytes())) for path in (ROOT / "tests" / "recorded").glob("*.gz")]
    fixes = {found["id"] for run in recorded for found in run["recommendations"]}
    assert "combination" in fixes
    assert fixes <= pages


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


def test_the_readme_quotes_the_wait_of_the_example_with_a_gpu() -> None:
    run = read_run(ROOT / "reports" / "examples" / "h100")
    wait = next(one for one in run.verdict.evidence_parts if one.label == "Data wait").figures
    percent, _, _ = wait.partition(" ")
    assert f"with 4 workers, a ResNet-50 waits for data {percent} of the time" in (ROOT / "README.md").read_text()
    assert run.baseline.config["num_workers"] == 4


@pytest.mark.parametrize("example", sorted((ROOT / "reports" / "examples").iterdir()), ids=lambda path: path.name)
def test_a_committed_example_is_whole_and_names_no_path_of_the_machine_it_ran_on(example: Path) -> None:
    assert {"run.json", "report.html"} <= {path.name for path in example.iterdir()}
    assert not re.search(r"/(?:home|root|work|Users|tmp)/", (example / "run.json").read_text())


def test_every_kind_of_failure_is_explained() -> None:
    from loaderbench.diagnosis.failures import _KNOWN

    text = (ROOT / "docs" / "reference" / "failures.md").read_text()
    assert [kind for kind, *_ in _KNOWN if f"`{kind}`" not in text] == []
