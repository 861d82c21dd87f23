"""What tuning prints: the change with its reference, doubts, and what to edit."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from loaderbench.code_places import CodeLine
from loaderbench.records import Interval
from loaderbench.tuning import OwnLoop, Tuned, words
from loaderbench.tuning.words import details, headline

PRESENT = {"num_workers": 0}
BETTER = Tuned(
    present=PRESENT,
    arguments={"num_workers": 2, "prefetch_factor": 2, "persistent_workers": True},
    gain=Interval(1.45, 1.43, 1.48),
    pairs=3,
    present_samples_per_s=100.0,
)
SURE = OwnLoop(samples_per_s=105.0, step_s_per_sample=0.001, step_cpu_s_per_sample=0.001)


def test_a_gain_names_the_change_and_what_it_is_over() -> None:
    assert headline("train_loader", BETTER) == (
        "train_loader: set num_workers=2, persistent_workers=True: "
        "+45% vs current arguments (43\N{EN DASH}48%), 3 pairs"
    )


def test_without_a_gain_the_present_arguments_stay_with_the_reason() -> None:
    none = Tuned(present=PRESENT, arguments=PRESENT, why_none="no other arguments were faster")
    assert headline("train_loader", none) == "train_loader: keep num_workers=0: no other arguments were faster"
    assert list(details(none, None, SURE)) == []


def test_where_nothing_is_doubted_and_no_line_is_known_there_is_nothing_to_add() -> None:
    assert list(details(BETTER, None, SURE)) == []


def test_other_programs_that_took_the_cpus_are_a_warning(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(words, "cpus_allotted", lambda: 2.0)
    (said,) = details(replace(BETTER, others_cpus=1.14), None, SURE)
    assert said.startswith("Warning: other programs used 1.1 of 2 CPUs during the trials. ")


@pytest.mark.parametrize("in_script", [112.0, 200.0])
def test_trials_that_are_slower_than_the_script_are_a_warning(in_script: float) -> None:
    (said,) = details(BETTER, None, OwnLoop(samples_per_s=in_script))
    assert said == (
        "Warning: trials of the current arguments ran slower than the script "
        f"(100 vs {in_script:.0f} samples/s); expect a smaller gain"
    )


@pytest.mark.parametrize(
    ("rate", "step_cpu_s", "workers", "expected"),
    [(950.0, 1e-3, 1, True), (950.0, 1e-3, 4, False), (950.0, 2e-4, 1, False), (400.0, 1e-3, 1, False)],
)
def test_a_step_on_the_cpu_that_takes_most_of_the_time_may_gain_too(
    rate: float, step_cpu_s: float, workers: int, expected: bool
) -> None:
    tuned = replace(BETTER, present={"num_workers": 2}, arguments={"num_workers": workers}, samples_per_s=rate)
    own = OwnLoop(samples_per_s=105.0, step_s_per_sample=1e-3, step_cpu_s_per_sample=step_cpu_s)
    said = [line for line in details(tuned, None, own) if "may be faster with fewer workers" in line]
    assert len(said) == expected


@pytest.mark.parametrize(("threads", "cpus", "expected"), [(2, 2.0, True), (1, 2.0, False), (2, 4.0, False)])
def test_threads_of_the_step_that_compete_with_workers_are_named(
    threads: int, cpus: float, expected: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(words, "cpus_allotted", lambda: cpus)
    own = OwnLoop(samples_per_s=100.0, step_s_per_sample=0.001, step_cpu_s_per_sample=0.001 * threads)
    none = Tuned(present=PRESENT, arguments=PRESENT, why_none="no other arguments were faster")
    for tuned in (BETTER, none):
        assert list(details(tuned, None, own)) == expected * [
            "The training step uses 2 threads, which compete with workers for 2 CPUs (trials include this). "
            "Try torch.set_num_threads(1) in the main process, then tune again"
        ]


def test_the_line_that_makes_the_loader_is_a_diff_or_is_named(tmp_path: Path) -> None:
    file = tmp_path / "train.py"
    file.write_text("loader = DataLoader(data)\nother = make(data)\nown = FastLoader(data, 4, 32)\n")
    (diff,) = details(BETTER, CodeLine(str(file), 1), SURE)
    assert diff.endswith("+loader = DataLoader(data, num_workers=2, persistent_workers=True)\n other = make(data)")
    assert list(details(BETTER, CodeLine(str(file), 2), SURE)) == ["The loader is created at train.py:2"]
    assert list(details(BETTER, CodeLine(str(file), 3), SURE)) == ["The loader is created at train.py:3"]
    (said,) = details(BETTER, CodeLine(str(file), 2, "timm.data.loader"), SURE)
    assert said == "timm creates this loader, in a call at train.py:2; pass the arguments through that call"
    (said,) = details(BETTER, CodeLine(str(file), 2, "transformers.trainer"), SURE)
    assert said == (
        "Hugging Face's Trainer creates this loader, in a call at train.py:2; "
        "set TrainingArguments(dataloader_num_workers=2, dataloader_persistent_workers=True)"
    )


def test_options_of_workers_are_a_function_to_paste(tmp_path: Path) -> None:
    file = tmp_path / "train.py"
    file.write_text("loader = DataLoader(data, num_workers=0)\n")
    tuned = Tuned(
        present=PRESENT, arguments={"num_workers": 2, "worker_threads": 1}, gain=Interval(2, 1.9, 2.1), pairs=5
    )
    diff, code = details(tuned, CodeLine(str(file), 1), SURE)
    assert "worker_threads" not in diff
    head, function = code.split("\n", 1)
    assert head == "Pass worker_init_fn=set_up, with"
    compile(function, "pasted", "exec")
    assert "def set_up(worker_id):" in function


@pytest.mark.parametrize(
    ("workers", "own", "said"),
    [
        (2, "", "Pass worker_init_fn=set_up, with"),
        (2, "seed", "Keep your worker_init_fn (seed), and call set_up(worker_id) at its end, with"),
        (0, "seed", "Define set_up, and call set_up(0) before training:"),
    ],
)
def test_an_init_function_of_the_loader_stays(workers: int, own: str, said: str) -> None:
    tuned = Tuned(
        present=PRESENT,
        arguments={"num_workers": workers, "worker_threads": 1},
        gain=Interval(2, 1.9, 2.1),
        worker_init_fn=own,
    )
    (code,) = details(tuned, None, SURE)
    assert code.splitlines()[0] == said


def test_no_line_is_named_where_no_argument_changes(tmp_path: Path) -> None:
    """Options of workers are a function to paste."""
    file = tmp_path / "train.py"
    file.write_text("trainer.train()\n")
    tuned = Tuned(present=PRESENT, arguments={**PRESENT, "worker_threads": 1}, gain=Interval(2, 1.9, 2.1), pairs=5)
    for library in ("timm.data.loader", "transformers.trainer"):
        assert not any("creates this loader" in said for said in details(tuned, CodeLine(str(file), 1, library), SURE))
