"""Failed trials in the report: one group for each cause, and what it shows is of one trial."""

from __future__ import annotations

from dataclasses import replace

import run_factory as runs
from blocks import failures

from loaderbench.records import Failure, RunRecord, format_scalar
from loaderbench.report.document import build_document
from loaderbench.report.sections.failures import FailureGroup


def failed(kind: str, *messages: str) -> RunRecord:
    """A run whose first trials failed with these messages; there are no others."""
    run = runs.all_failed()
    some = zip(run.trials, messages, strict=False)
    return replace(run, trials=tuple(replace(t, failure=Failure(kind, text, "Look at it.")) for t, text in some))


def groups_of(kind: str, *messages: str) -> tuple[FailureGroup, ...]:
    return failures(build_document(failed(kind, *messages)))


def raised(text: str) -> str:
    return f"Traceback (most recent call last):\n  File 'mine.py', line 3, in load\n{text}"


def test_two_messages_of_one_kind_are_two_groups_the_more_frequent_first() -> None:
    found = groups_of("error", raised("KeyError: 'label'"), *[raised("ValueError: no such mode")] * 2)

    assert [(group.kind.text, group.count, group.last_words.text) for group in found] == [
        ("error", "2 trials", "ValueError: no such mode"),
        ("error", "1 trial", "KeyError: 'label'"),
    ]


def test_messages_that_differ_in_numbers_are_one_group() -> None:
    said = [raised(f"IndexError: index {n} is out of bounds (at 0x7f{n}ab, rank {n})") for n in (3, 41, 5)]

    assert [group.count for group in groups_of("error", *said)] == ["3 trials"]


def test_the_text_around_the_last_words_makes_no_other_group() -> None:
    found = groups_of("error", raised("KeyError: 'a'"), "Caught in worker 0.\n" + raised("KeyError: 'a'"))

    assert [group.count for group in found] == ["2 trials"]


def test_no_memory_and_hangs_are_one_group_whatever_their_messages_say() -> None:
    assert len(groups_of("device_memory", "CUDA out of memory. Tried 2 GiB", "CUDA error: out of memory")) == 1
    assert len(groups_of("hang", "no progress for 9 s; phase: warm-up", "no result after 60 s; phase: measuring")) == 1


def test_message_log_and_command_are_those_of_one_trial() -> None:
    run = failed("hang", "no progress; phase: warm-up", "no progress; phase: measuring", "no progress; phase: start")
    (group,) = failures(build_document(run))

    shown = next(trial for trial in run.trials if trial.failure and trial.failure.message == group.last_words.text)
    assert group.log
    assert group.log.text == shown.log
    assert group.command
    assert all(f"{axis}={format_scalar(value)} " in group.command for axis, value in shown.config.items())


def test_of_many_messages_of_one_kind_the_rarest_share_the_last_group() -> None:
    names = ["lions", "lions", "zebras", "lynxes", "tigers", "ocelots", "pumas", "jaguars"]
    found = groups_of("missing", *(raised(f"FileNotFoundError: no such file: {name}.jpg") for name in names))

    assert [group.count for group in found] == ["2 trials", *["1 trial"] * 4, "2 trials, several messages"]
    assert found[0].last_words.text.endswith("lions.jpg")
