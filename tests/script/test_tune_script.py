"""`loaderbench tune` on unmodified scripts: arguments that were measured on the script's own loader."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from scripts import HEAD, call, write

from loaderbench.result import load

Done = subprocess.CompletedProcess[str]

TRAINING = (
    HEAD
    + """\
def main():
    model = torch.nn.Linear(8, 4)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    val_loader = DataLoader(Slow(400, 0.001), batch_size=8)
    with torch.no_grad():
        for inputs, labels in val_loader:
            model(inputs)
    train_loader = DataLoader(
        Slow(1600, 0.004),
        batch_size=8,
    )
    for inputs, labels in train_loader:
        loss = torch.nn.functional.cross_entropy(model(inputs), labels)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    print("trained", sys.argv[1:], int(inputs[-1][0]))


if __name__ == "__main__":
    try:
        main()
    finally:
        print("closed")
"""
)


@pytest.fixture(scope="module")
def tuned(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Done]:
    """A training whose samples wait, tuned without its end. Tests of it are `timed`, or it is tuned twice."""
    place = tmp_path_factory.mktemp("tuned")
    write(place, TRAINING)
    return place / "run", call(place, "tune", "--budget", "12s", "--out", "run", "--json", "run.json", "train.py")


@pytest.mark.slow
@pytest.mark.timed
def test_the_script_waits_and_then_ends_as_by_an_exit_of_its_own(tuned: tuple[Path, Done]) -> None:
    _, done = tuned
    assert (done.returncode, done.stdout) == (0, "closed\n")


@pytest.mark.slow
@pytest.mark.timed
def test_workers_are_advised_with_the_gain_that_they_had_in_trials(tuned: tuple[Path, Done]) -> None:
    folder, done = tuned
    said = next(line for line in done.stderr.splitlines() if line.startswith("Tuned train_loader: set num_workers="))
    record = load(folder).record
    assert record.best is not None
    assert record.best.gain is not None
    assert "vs current arguments (" in said
    assert record.best.gain.lo is not None
    assert record.best.gain.lo > 1


@pytest.mark.slow
@pytest.mark.timed
def test_trials_have_the_script_s_own_samples_and_nothing_else_is_tuned(tuned: tuple[Path, Done]) -> None:
    folder, _ = tuned
    record = load(folder).record
    assert record.name == "train_loader"
    assert record.dataset.description == "Slow, 1,600 samples"
    assert {trial.status for trial in record.sweep} == {"completed"}
    assert {trial.config["num_workers"] for trial in record.sweep} >= {0, 1, 2}
    assert record.loader == {"batch_size": 8}
    assert record.environment.not_measured["gpus"].startswith("trials are forked from the script")


@pytest.mark.slow
@pytest.mark.timed
def test_the_demand_is_that_of_the_script_s_own_step(tuned: tuple[Path, Done]) -> None:
    folder, _ = tuned
    record = load(folder).record
    (of_script,) = load(folder / "script").trials
    assert record.consumer == "emulated"
    assert record.assumed_demand is not None
    assert of_script.samples_per_s is not None
    assert record.assumed_demand.samples_per_s > of_script.samples_per_s


@pytest.mark.slow
@pytest.mark.timed
def test_the_change_is_a_diff_of_the_line_that_made_the_loader(tuned: tuple[Path, Done]) -> None:
    _, done = tuned
    lines = done.stderr.splitlines()
    at = lines.index("--- train.py")
    assert lines[at + 1] == "+++ train.py, tuned"
    assert "-        batch_size=8," in lines[at:]
    assert any(line.startswith("+        batch_size=8, num_workers=") for line in lines[at:])
    assert lines[-1] == "Report: run/report.html"


@pytest.mark.slow
@pytest.mark.timed
def test_the_file_of_the_run_is_that_of_the_trials(tuned: tuple[Path, Done]) -> None:
    folder, _ = tuned
    found = json.loads((folder.parent / "run.json").read_text())
    assert found["trials"][0]["role"] in ("sweep", "twin")


@pytest.mark.slow
def test_with_keep_training_the_script_goes_on_where_it_was(tmp_path: Path) -> None:
    write(tmp_path, TRAINING)
    done = call(tmp_path, "tune", "--budget", "8s", "--keep-training", "--out", "run", "train.py", "--lr", "1")
    assert (done.returncode, done.stdout) == (0, "trained ['--lr', '1'] 1599\nclosed\n"), done.stderr
    assert "\nTuned train_loader: " in done.stderr
    (of_script,) = load(tmp_path / "run" / "script").trials
    assert 15 < of_script.batches < 60, "recorded until it was tuned"


@pytest.mark.slow
def test_a_dataset_that_copies_cannot_share_is_not_tried_and_the_reason_is_told(tmp_path: Path) -> None:
    given = "self.samples, self.wait_s = samples, wait_s"
    write(tmp_path, TRAINING.replace(given, f"{given}; self.file = open(__file__, 'rb')"))
    done = call(tmp_path, "tune", "--budget", "8s", "--out", "run", "train.py")
    assert done.returncode == 0
    assert "Tuned train_loader: keep num_workers=0: the dataset (Slow) holds an open file" in done.stderr
    assert load(tmp_path / "run").record.kind == "profile"


@pytest.mark.slow
@pytest.mark.parametrize("method", ["fork", "spawn", "forkserver"])
def test_the_start_method_of_the_script_is_that_of_trials_too(tmp_path: Path, method: str) -> None:
    text = TRAINING.replace(
        "    try:\n", f"    import multiprocessing\n    multiprocessing.set_start_method({method!r})\n    try:\n"
    )
    text = text.replace(
        "time.sleep(self.wait_s)",
        "time.sleep(self.wait_s); import multiprocessing as m\n"
        "        assert m.parent_process() is None or m.get_start_method() == METHOD",
    )
    text = f"METHOD = {method!r}\n{text}"
    write(tmp_path, text)
    done = call(tmp_path, "tune", "--budget", "6s", "--out", "run", "train.py")
    assert done.returncode == 0
    record = load(tmp_path / "run").record
    assert {trial.status for trial in record.sweep if trial.config["num_workers"]} == {"completed"}, done.stderr


def test_a_script_without_a_loop_has_nothing_to_tune(tmp_path: Path) -> None:
    write(tmp_path, "print('nothing')\n")
    done = call(tmp_path, "tune", "--out", "run", "train.py")
    assert (done.returncode, done.stdout) == (0, "nothing\n")
    assert "nothing was tuned: no loop with an optimizer step reached 30 batches" in done.stderr


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--budget", "1s", "train.py"], "loaderbench: --budget: 1s is too short to compare anything; use 5s or more"),
        (["--budget", "soon", "train.py"], "loaderbench: --budget: expected a duration such as 90s, 10m or 1h30m"),
        (["other.py"], "other.py: no such script"),
    ],
)
def test_wrong_use_is_one_line(tmp_path: Path, arguments: list[str], said: str) -> None:
    write(tmp_path, "print('never')\n")
    done = call(tmp_path, "tune", *arguments)
    assert (done.returncode, done.stdout) == (2, "")
    assert said in done.stderr
    assert len(done.stderr.splitlines()) == 1


@pytest.mark.slow
def test_ctrl_c_ends_tuning_with_what_was_measured_and_then_the_script(tmp_path: Path) -> None:
    write(tmp_path, TRAINING)
    command = [sys.executable, "-m", "loaderbench", "tune", "--budget", "60s", "--out", "run", "train.py"]
    running = subprocess.Popen(command, cwd=tmp_path, stderr=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    trials = tmp_path / "run" / "trials.jsonl"
    while running.poll() is None and not (trials.exists() and trials.read_text().count("\n") > 2):
        time.sleep(0.1)
    running.send_signal(signal.SIGINT)
    said, errors = running.communicate(timeout=60)
    assert (running.returncode, said) == (130, "closed\n"), errors
    assert "\nTuned train_loader: keep num_workers=0: " in errors
    record = load(tmp_path / "run").record
    assert record.complete is False
    assert len(record.sweep) >= 2
    assert load(tmp_path / "run" / "script").record.kind == "profile"
