"""Scripts that are started, or fail to be recorded, in less usual ways."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from scripts import HEAD, as_a_user_does, call, profile, write

from loaderbench.result import load

COUNTED = f"{HEAD}print(sum(1 for _ in DataLoader(Slow(160, 0), batch_size=8)))\n"

LOADER_THAT_FAILS = """\
import loaderbench.script.recorder
def fail(self, loader): raise RuntimeError("no")
loaderbench.script.recorder.ScriptRecorder._recorded_of = fail
"""


def test_a_module_may_be_joined_to_its_flag_as_for_python(tmp_path: Path) -> None:
    write(tmp_path, "import sys\nprint(sys.argv[1:])", "mine.py")
    assert profile(tmp_path, "-q", "-mmine", "--help").stdout == "['--help']\n"
    assert profile(tmp_path, "-qmmine", "-m", "x").stdout == "['-m', 'x']\n"


def test_loaders_are_recorded_although_the_user_s_sitecustomize_imports_torch(tmp_path: Path) -> None:
    write(tmp_path, "import torch.utils.data", "sitecustomize.py")
    write(tmp_path, COUNTED)
    done = profile(tmp_path, "--out", "run", "train.py", PYTHONPATH=str(tmp_path))
    assert done.stdout == "20\n"
    assert load(tmp_path / "run").trials[0].batches


def test_a_loader_that_cannot_be_recorded_is_not_said_to_be_lost(tmp_path: Path) -> None:
    write(tmp_path, LOADER_THAT_FAILS + COUNTED)
    done = profile(tmp_path, "train.py")
    assert (done.returncode, done.stdout) == (0, "20\n")
    first, second = done.stderr.splitlines()
    assert first.startswith("loaderbench: cannot record")
    assert second == "loaderbench: nothing was recorded"


def test_of_many_loaders_of_one_line_the_later_ones_are_recorded_together(tmp_path: Path) -> None:
    write(
        tmp_path,
        f"""{HEAD}
clients = [DataLoader(Slow(16, 0), batch_size=8) for _ in range(24)]
for _ in range(3):
    for client in clients:
        for _ in client:
            pass
""",
    )
    assert profile(tmp_path, "--out", "run", "train.py").returncode == 0
    begun = [load(file.parent).trials[0].epochs for file in (tmp_path / "run").rglob("run.json")]
    assert sorted(epochs.begun for epochs in begun if epochs) == [3] * 19 + [3 * 5]


@pytest.mark.parametrize("command", ["profile", "tune"])
def test_a_result_that_was_not_written_is_named_however_quiet(tmp_path: Path, command: str) -> None:
    write(tmp_path, "print('done')")
    done = call(tmp_path, command, "-q", "--json", "-", "--md", "r.md", "train.py")
    assert (done.returncode, done.stdout) == (0, "done\n")
    assert done.stderr.splitlines() == [
        "loaderbench: --json -: not written: nothing was recorded",
        "loaderbench: --md r.md: not written: nothing was recorded",
    ]


@pytest.mark.skipif(os.name != "posix", reason="descriptors are passed by number")
def test_descriptors_that_a_shell_passes_are_the_script_s(tmp_path: Path) -> None:
    """As in `train.py <(zcat list.gz)`."""
    write(tmp_path, "import sys\nprint(open(sys.argv[1]).read())")
    ours, theirs = os.pipe()
    os.write(theirs, b"passed")
    os.close(theirs)
    done = as_a_user_does(tmp_path, "-q", "train.py", f"/dev/fd/{ours}", environment={}, pass_fds=(ours,))
    os.close(ours)
    assert (done.returncode, done.stdout) == (0, "passed\n"), done.stderr


STEPS = """
if __name__ == "__main__":
    model = torch.nn.Linear(8, 4)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    loader = DataLoader(Slow(80, 0), batch_size=8)
    for step in range(60):
        inputs, labels = next(iter(loader))
        model(inputs).sum().backward()
        optimizer.step()
    print("trained")
"""


def test_a_loop_that_begins_an_epoch_in_each_step_gets_that_as_its_answer_from_tune(tmp_path: Path) -> None:
    write(tmp_path, HEAD + STEPS)
    done = call(tmp_path, "tune", "--keep-training", "--out", "run", "train.py")
    assert (done.returncode, done.stdout) == (0, "trained\n"), done.stderr
    assert "Tuned loader: keep num_workers=0: the loop takes one or two batches of each epoch" in done.stderr
    assert load(tmp_path / "run").record.kind == "profile"
