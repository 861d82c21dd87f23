"""Gates and trials as JUnit XML, for CI servers."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from xml.etree import ElementTree

from loaderbench.records import GateResult, RunRecord, config_name
from loaderbench.report import words
from loaderbench.report.view import failures_in_words


def render_junit(run: RunRecord, gates: Sequence[GateResult]) -> str:
    """Render a test case for each gate and each measured configuration.

    An inconclusive gate is an error. A gate that only warns is skipped, with a message. A run without a completed trial
    adds an error, and so does `ab` without a pair.
    """
    cases = [*map(_gate, gates), *_configurations(run), *_nothing_measured(run)]
    suite = ElementTree.Element("testsuite", name=words.plain(f"loaderbench {run.name}", 200), tests=str(len(cases)))
    for kind in ("failure", "error", "skipped"):
        suite.set({"failure": "failures", "error": "errors"}.get(kind, kind), str(sum(_holds(c, kind) for c in cases)))
    suite.extend(cases)
    ElementTree.indent(suite)
    return ElementTree.tostring(suite, encoding="unicode", xml_declaration=True) + "\n"


def _holds(case: ElementTree.Element, kind: str) -> bool:
    return case.find(kind) is not None


def _gate(result: GateResult) -> ElementTree.Element:
    case = _case("gate", result.gate.text)
    if result.outcome != "passed":
        kind = "skipped" if result.gate.warns_only else "failure" if result.outcome == "failed" else "error"
        ElementTree.SubElement(case, kind, message=words.plain(f"{result.outcome}: {result.said}", 1_000))
    else:
        ElementTree.SubElement(case, "system-out").text = words.plain(result.said, 1_000)
    return case


def _configurations(run: RunRecord) -> list[ElementTree.Element]:
    by_id = {trial.id: trial for trial in run.sweep}
    cases = []
    for configuration in run.configurations:
        trials = [by_id[name] for name in configuration.trials if name in by_id]
        case = _case("configuration", config_name(configuration.config))
        case.set("time", f"{sum(trial.duration_s or 0 for trial in trials):.3f}")
        if reason := ", ".join(failures_in_words(trials)) if trials else "not run":
            ElementTree.SubElement(case, "skipped", message=words.plain(reason, 1_000))  # only gates count as failures
        cases.append(case)
    return cases


def _nothing_measured(run: RunRecord) -> Iterator[ElementTree.Element]:
    """Yield an error if no trial was completed, or no pair of `ab`; all configurations would only be skipped."""
    trials = run.sweep_or_ab_trials
    if not any(trial.status == "completed" for trial in trials):
        yield _error(run, f"nothing was measured: {'; '.join(failures_in_words(trials)) or 'no trial ran'}")
    elif run.comparison is not None and not any(change.change for change in run.comparison.metrics):
        yield _error(run, f"no pair was measured: {'; '.join(_failures_by_version(run)) or run.comparison.headline}")


def _failures_by_version(run: RunRecord) -> Iterator[str]:
    """Yield how trials of each version of `ab` failed: `before (main): hang in 3 of 3 trials`."""
    for version in run.side_by_side.versions if run.side_by_side else ():
        if failed := failures_in_words([trial for trial in run.ab_trials if trial.side == version.side]):
            yield f"{version.side} ({version}): {'; '.join(failed)}"


def _error(run: RunRecord, message: str) -> ElementTree.Element:
    case = _case("run", run.name)
    ElementTree.SubElement(case, "error", message=words.plain(message, 1_000))
    return case


def _case(kind: str, name: str) -> ElementTree.Element:
    return ElementTree.Element("testcase", classname=f"loaderbench.{kind}", name=words.plain(name, 200))
