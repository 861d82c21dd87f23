"""`profile` names the lines of a script where a step, or the time between epochs, goes outside of the loader."""

from __future__ import annotations

from pathlib import Path

import pytest
from scripts import HEAD, profile, write

from loaderbench.result import load

SCRIPT = (
    HEAD
    + """\
def checkpoint():
    time.sleep(0.03)  # saves

def list_files():
    time.sleep(0.2)  # lists

def train(loader, model, optimizer):
    for inputs, _ in loader:
        optimizer.zero_grad()
        model(inputs).sum().backward()
        optimizer.step()
        checkpoint()

model = torch.nn.Linear(8, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
loader = DataLoader(Slow(96, 0.001), batch_size=8, num_workers=WORKERS, persistent_workers=WORKERS > 0)
for _ in range(4):
    train(loader, model, optimizer)
    list_files()
"""
)
"""A script whose checkpoints take most of a step, and whose lists of files take the time between epochs."""


@pytest.mark.parametrize("workers", [pytest.param(0, marks=pytest.mark.slow), 1])
def test_the_lines_of_a_checkpoint_and_of_the_time_between_epochs_are_named(tmp_path: Path, workers: int) -> None:
    text = SCRIPT.replace("WORKERS", str(workers))
    write(tmp_path, text)
    profile(tmp_path, "--out", "run", "train.py")
    saves, lists = (
        next(number for number, line in enumerate(text.splitlines(), 1) if line.endswith(f"# {mark}"))
        for mark in ("saves", "lists")
    )
    run = load(tmp_path / "run")
    (trial,) = run.trials
    assert trial.step_line is not None
    assert (trial.step_line.place, trial.step_line.text) == (f"train.py:{saves}", "time.sleep(0.03)  # saves")
    assert trial.epochs is not None
    assert trial.epochs.between_line is not None
    assert trial.epochs.between_line.place == f"train.py:{lists}"
    assert "faster_loop" in {fix.id for fix in run.recommendations}
    evidence = "\n".join(run.verdict.evidence)
    assert f"mostly in train.py:{saves}" in evidence
    assert f"mostly in train.py:{lists}; throughput and data wait exclude it" in evidence


def test_a_loop_that_waits_for_data_is_not_advised_to_change_its_own_code(tmp_path: Path) -> None:
    write(tmp_path, SCRIPT.replace("WORKERS", "1").replace("0.03", "0").replace("0.2", "0"))
    profile(tmp_path, "--out", "run", "train.py")
    advised = {fix.id for fix in load(tmp_path / "run").recommendations}
    assert advised
    assert not advised & {"faster_loop", "between_epochs"}


def test_an_evaluation_in_the_training_loop_has_a_stage_and_the_line_that_calls_the_model(tmp_path: Path) -> None:
    slow_model = (
        "class SlowModel(torch.nn.Linear):\n    def forward(self, x):\n        time.sleep(0.03)\n"
        "        return super().forward(x)\n\n"
    )
    call = "SlowModel(8, 1)(torch.ones(1, 8))  # evaluates"
    text = (
        SCRIPT.replace("WORKERS", "1")
        .replace("time.sleep(0.03)  # saves", f"with torch.no_grad():\n        {call}")
        .replace("time.sleep(0.2)  # lists", "pass")
        .replace("def checkpoint():", f"{slow_model}def checkpoint():")
    )
    write(tmp_path, text)
    profile(tmp_path, "--out", "run", "train.py")
    run = load(tmp_path / "run")
    (trial,) = run.trials
    place = next(number for number, line in enumerate(text.splitlines(), 1) if line.endswith("# evaluates"))
    assert trial.step_line is not None
    assert (trial.step_line.place, trial.step_line.text) == (f"train.py:{place}", call)
    assert trial.step_stages is not None
    assert trial.step_stages["forward without gradients"].wall_s >= 0.5 * trial.step.mean_s
    assert f"mostly in train.py:{place}" in "\n".join(run.verdict.evidence)
