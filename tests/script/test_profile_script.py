"""An unmodified script under `loaderbench profile`: what is recorded of it, and that it notices nothing."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from scripts import HEAD, PLAIN, as_a_user_does, profile, write

from loaderbench.records import Trial
from loaderbench.result import load


@pytest.fixture(scope="module")
def plain(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, subprocess.CompletedProcess[str]]:
    """A plain PyTorch training with a validation, profiled."""
    place = tmp_path_factory.mktemp("plain")
    write(place, PLAIN)
    return place / "run", profile(place, "--out", "run", "--json", "-", "train.py", "--lr", "0.1", "--", "-q")


def line_of(text: str) -> int:
    """Where the plain training has this text first."""
    return next(number for number, line in enumerate(PLAIN.splitlines(), 1) if text in line)


def test_the_script_gets_its_arguments_and_json_on_stdout_follows_what_it_printed(plain: Any) -> None:
    _, done = plain
    first, blank, rest = done.stdout.split("\n", 2)
    assert (done.returncode, first, blank) == (0, "trained ['--lr', '0.1', '--', '-q']", "")
    assert json.loads(rest)["name"] == "train_loader"


def test_the_verdict_is_about_the_loader_of_the_training(plain: Any) -> None:
    folder, done = plain
    run = load(folder)
    assert run.record.name == "train_loader"
    assert run.record.suite["script"] == "train.py --lr 0.1 -- -q"
    verdict, loader, *_ = done.stderr.splitlines()
    assert verdict.startswith(f"{run.verdict.bound.upper()}")
    assert run.verdict.headline[:30] in verdict
    assert loader.startswith(f"Loader: train_loader (train.py:{line_of('train_loader = ')})")


def test_both_epochs_are_recorded_with_the_stages_inside_the_workers(plain: Any) -> None:
    folder, _ = plain
    (trial,) = load(folder).trials
    assert trial.epochs.begun == 2
    assert trial.batches + trial.warmup_batches == 2 * 60 - 2  # the first of each epoch is apart
    assert trial.stages is not None
    assert trial.config["num_workers"] == 2


def test_the_step_is_divided_into_what_torch_does(plain: Any) -> None:
    folder, _ = plain
    (training,), (validation,) = load(folder).trials, load(folder / "val_loader").trials
    assert training.step_stages.keys() == {"forward", "backward", "optimizer"}
    assert validation.step_stages.keys() == {"forward"}


def test_the_validation_has_a_run_of_its_own(plain: Any) -> None:
    folder, done = plain
    (trial,) = load(folder / "val_loader").trials
    assert trial.config["num_workers"] == 0
    assert trial.epochs.begun == 2
    assert f"\nLoader: val_loader (train.py:{line_of('val_loader = ')})" in done.stderr


def test_each_page_is_written(plain: Any) -> None:
    folder, _ = plain
    assert "train_loader" in (folder / "report.html").read_text()
    assert (folder / "val_loader" / "report.html").is_file()


SAME = (
    HEAD
    + """\
import multiprocessing, pickle, random

class Own:
    pass

def main():
    loader = DataLoader(Slow(40, 0), batch_size=8, num_workers=1, multiprocessing_context=sys.argv[1])
    drawn = [float(inputs.sum()) for inputs, _ in loader]
    print(__name__, sys.argv, os.getcwd(), sys.path[0], __file__, drawn)
    print(pickle.loads(pickle.dumps(Own())).__class__.__module__, random.random(), torch.rand(1).item())
    print([place for place in sys.path if "loaderbench" in place], os.environ.get("PYTHONPATH"))
    print(sorted(name for name in os.environ if "LOADERBENCH" in name), multiprocessing.get_start_method())
    print(type(iter(loader)).__name__ if len(sys.argv) > 2 else "", sys.stdin.read())

if __name__ == "__main__":
    random.seed(3)
    torch.manual_seed(3)
    main()
"""
)


@pytest.mark.parametrize("method", ["fork", "spawn"])
@pytest.mark.slow
def test_a_script_sees_what_it_would_see_without_us(tmp_path: Path, method: str) -> None:
    write(tmp_path, SAME)
    environment = {"PYTHONPATH": str(tmp_path / "mine")}
    alone = subprocess.run(
        [sys.executable, "train.py", method], cwd=tmp_path, input="typed", capture_output=True, text=True, check=True,
        env={**os.environ, **environment},
    )  # fmt: skip
    ours = as_a_user_does(tmp_path, "-q", "--out", "run", "train.py", method, input="typed", environment=environment)
    assert ours.stdout == alone.stdout
    assert without_resource_tracker(ours.stderr) == without_resource_tracker(alone.stderr)
    assert load(tmp_path / "run").trials[0].batches > 0


def without_resource_tracker(stderr: str) -> list[str]:
    """Python's tracker of semaphores, a process of its own, may warn of those that the script has just removed."""
    return [line for line in stderr.splitlines() if "resource_tracker" not in line]


def test_a_sitecustomize_of_the_user_is_imported_too(tmp_path: Path) -> None:
    write(tmp_path, "print('theirs')", "sitecustomize.py")
    write(tmp_path, "import sitecustomize\nprint(sitecustomize.__file__)")
    done = as_a_user_does(tmp_path, "-q", "train.py", environment={"PYTHONPATH": str(tmp_path)})
    assert done.stdout == f"theirs\ntheirs\n{tmp_path / 'sitecustomize.py'}\n"  # by the command, and by the script


@pytest.mark.slow
def test_a_file_of_the_script_that_is_called_like_a_module_is_the_script_s_alone(tmp_path: Path) -> None:
    write(tmp_path, "raise SystemExit('statistics of the script')", "statistics.py")  # which torch does not import
    loop = "print(sum(1 for _ in DataLoader(Slow(80, 0), batch_size=8)))\n"
    later = "try:\n    import statistics\nexcept SystemExit as end:\n    print(end)\n"
    write(tmp_path, HEAD + loop + later)
    done = profile(tmp_path, "--out", "run", "train.py")
    assert (done.returncode, done.stdout) == (0, "10\nstatistics of the script\n"), done.stderr
    assert load(tmp_path / "run").trials[0].batches


@pytest.mark.parametrize(
    ("end", "code", "words"),
    [
        ("sys.exit(7)", 7, ""),
        ("raise ValueError('theirs')", 1, "ValueError: theirs"),
        ("os.kill(os.getpid(), 15)", 143, ""),
    ],
)
def test_the_exit_code_is_the_script_s(tmp_path: Path, end: str, code: int, words: str) -> None:
    write(tmp_path, f"import os, sys\n{end}\n")
    done = profile(tmp_path, "train.py")
    assert done.returncode == code
    assert words in done.stderr
    assert "this process iterated over no torch DataLoader" in done.stderr


LONG = HEAD + "for batch in DataLoader(Slow(100_000), batch_size=8, num_workers=1):\n    {body}\n"


def test_a_script_that_raises_in_its_loop_has_a_report_until_then(tmp_path: Path) -> None:
    write(tmp_path, LONG.format(body="\n    if batch[0][0][0] > 300: raise ValueError('theirs')"))
    done = profile(tmp_path, "--out", "run", "train.py")
    assert done.returncode == 1
    assert "ValueError: theirs" in done.stderr
    assert load(tmp_path / "run").trials[0].batches > 10


def test_an_interrupt_that_is_sent_to_the_command_reaches_the_script(tmp_path: Path) -> None:
    """In a session without a terminal; from a terminal, Ctrl-C reaches both."""
    write(tmp_path, LONG.format(body="(batch[0][0][0] == 320) and print('running', flush=True)"))
    command = [sys.executable, "-m", "loaderbench", "profile", "--out", "run", "train.py"]
    running = subprocess.Popen(
        command, cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True
    )
    assert running.stdout is not None
    assert running.stdout.readline() == "running\n"
    running.send_signal(signal.SIGINT)
    _, said = running.communicate(timeout=120)
    assert running.returncode == 130
    assert said.count("KeyboardInterrupt") >= 1
    assert load(tmp_path / "run").trials[0].batches > 10


@pytest.mark.slow
def test_a_script_that_ends_at_once_within_its_first_batches_is_not_said_to_have_no_loader(tmp_path: Path) -> None:
    write(tmp_path, LONG.format(body="os._exit(9)"))
    done = profile(tmp_path, "train.py")
    assert done.returncode == 9
    assert done.stderr == (
        "loaderbench: nothing was saved: the script ended too early (signal, os._exit or os.exec*)\n"
    )


@pytest.mark.slow
def test_the_start_method_is_chosen_by_the_script_however_late(tmp_path: Path) -> None:
    late = (
        "import multiprocessing\n"
        "for _ in DataLoader(Slow(8 * 400, 0.001), batch_size=8): pass\n"  # longer than until the first save
        "multiprocessing.set_start_method('spawn')\n"
        "print(multiprocessing.get_start_method(), DataLoader.__iter__.__qualname__)\n"
    )
    write(tmp_path, HEAD + late)
    done = profile(tmp_path, "-q", "--out", "run", "train.py")
    assert (done.returncode, done.stdout, done.stderr) == (0, "spawn DataLoader.__iter__\n", "")
    assert load(tmp_path / "run").trials[0].batches


def test_signals_that_are_ignored_already_are_ignored_by_the_script(tmp_path: Path) -> None:
    ignored = "print(signal.getsignal(signal.SIGHUP) == signal.SIG_IGN)"
    write(tmp_path, f"import os, signal\nos.kill(os.getppid(), signal.SIGHUP)\n{ignored}")
    command = f"trap '' HUP; exec {sys.executable} -m loaderbench profile train.py"  # as under nohup
    done = subprocess.run(["sh", "-c", command], cwd=tmp_path, capture_output=True, text=True, timeout=60, check=False)
    assert (done.returncode, done.stdout) == (0, "True\n"), done.stderr


@pytest.mark.parametrize("end", ["os._exit(9)", "os.kill(os.getpid(), 9)"])
@pytest.mark.slow
def test_what_was_recorded_survives_a_script_that_ends_without_a_last_word(tmp_path: Path, end: str) -> None:
    write(tmp_path, LONG.format(body=f"time.sleep(0.01)\n    if batch[0][0][0] > 2_400: {end}"))
    done = profile(tmp_path, "--out", "run", "train.py")
    assert done.returncode in (9, 137)
    assert load(tmp_path / "run").trials[0].batches > 10


def test_recording_stops_after_its_steps_and_the_script_continues(tmp_path: Path) -> None:
    write(tmp_path, HEAD + "print(sum(1 for _ in DataLoader(Slow(800, 0), batch_size=8, num_workers=1)))\n")
    done = profile(tmp_path, "--steps", "40", "--out", "run", "train.py")
    assert done.stdout == "100\n"
    assert load(tmp_path / "run").trials[0].batches == 40


@pytest.mark.slow
def test_recording_stops_after_its_seconds_and_the_script_continues(tmp_path: Path) -> None:
    write(
        tmp_path,
        HEAD + "for _ in range(2):\n    print(sum(1 for _ in DataLoader(Slow(1600, 0.001), batch_size=8)))\n",
    )
    done = profile(tmp_path, "--seconds", "1", "--out", "run", "train.py")
    assert done.stdout == "200\n200\n"
    (trial,) = load(tmp_path / "run").trials
    assert 10 < trial.batches < 200
    assert trial.epochs.begun == 1


UNUSUAL = """\
from loaderbench import Profiler

class Own:
    def __iter__(self):
        return iter([int(i) for x, _ in inner for i in x[:, 0]])
    def __len__(self): return 80

class Broken:
    def __iter__(self):
        print("asked")
        raise ValueError("theirs")
    def __len__(self): return 1

profiled = DataLoader(Slow(160, 0), batch_size=8)
with Profiler("own") as prof:
    print(sum(1 for _ in prof.iter(profiled)), end=" ")
print(prof.result.trials[0].batches)

it = iter(DataLoader(Slow(80, 0), batch_size=8, num_workers=2))
print(len(it), it._num_workers, len(next(it)), end=" ")
it._shutdown_workers()
print(hasattr(it, "no_such"))

twice = DataLoader(Slow(320, 0), batch_size=8, num_workers=1)
print(sum(len(a[0]) + len(b[0]) for a, b in zip(twice, twice)), sum(1 for _ in twice))

inner = DataLoader(Slow(80, 0), batch_size=8)
outer = DataLoader(Slow(80, 0), batch_size=8, sampler=Own())
print(sum(1 for _ in outer))

class Resumes(torch.utils.data.IterableDataset):  # stops after every 30 items, then resumes
    def __init__(self): self.made = 0
    def __iter__(self): return self
    def __next__(self):
        self.made += 1
        if self.made % 31 == 0: raise StopIteration
        return self.made

it = None
it = it or iter(DataLoader(Resumes(), batch_size=None))
print([sum(1 for _ in it) for _ in range(3)])

for _ in DataLoader(Slow(80, 0), batch_sampler=Broken()): pass
"""


@pytest.fixture(scope="module")
def unusual(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, subprocess.CompletedProcess[str]]:
    """One script that does one unusual thing after another, a line each; the last of them ends it."""
    place = tmp_path_factory.mktemp("unusual")
    write(place, HEAD + UNUSUAL)
    done = profile(place, "--out", "run", "train.py")
    assert "cannot record" not in done.stderr
    return place / "run", done


def recorded_loader(folder: Path, name: str) -> Trial:
    """The trial of a loader of a script that has several."""
    runs = [load(file.parent) for file in sorted(folder.rglob("run.json"))]
    (trial,) = next(run.trials for run in runs if run.record.name == name)
    return trial


def test_a_profiler_of_the_script_s_own_is_left_alone(unusual: Any) -> None:
    _, done = unusual
    assert done.stdout.splitlines()[0] == "20 10"


def test_an_iterator_is_torch_s_own_in_everything_but_its_batches(unusual: Any) -> None:
    _, done = unusual
    assert done.stdout.splitlines()[1] == "10 2 2 False"


def test_two_epochs_of_a_loader_at_a_time_are_whole_and_one_is_recorded(unusual: Any) -> None:
    folder, done = unusual
    assert done.stdout.splitlines()[2] == "640 40"
    assert recorded_loader(folder, "twice").epochs.begun == 3


def test_a_sampler_may_iterate_over_another_loader_while_its_own_epoch_begins(unusual: Any) -> None:
    _, done = unusual
    assert done.stdout.splitlines()[3] == "10"
    assert "Loader: outer (" in done.stderr
    assert "Loader: inner (" in done.stderr


def test_an_iterator_that_begins_again_after_its_end_does_so(unusual: Any) -> None:
    _, done = unusual
    assert done.stdout.splitlines()[4] == "[30, 30, 30]"


def test_a_loader_that_cannot_begin_raises_what_it_raises_without_us_and_once(unusual: Any) -> None:
    _, done = unusual
    assert (done.returncode, done.stdout.splitlines()[5:]) == (1, ["asked"])
    assert done.stderr.count("ValueError: theirs") == 1


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ((), "nothing to run: name a script"),
        (("missing.py",), "missing.py: no such script"),
        (("--", "no-such-program"), "no-such-program: no such program"),
        (("--steps", "0", "train.py"), "0 is not in the range"),
    ],
)
def test_what_cannot_be_run_is_one_line(tmp_path: Path, arguments: tuple[str, ...], words: str) -> None:
    done = profile(tmp_path, *arguments)
    assert done.returncode in (2, 5)
    assert words in done.stderr
    assert done.stderr.count("\n") == 1


def test_a_module_may_follow_flags_in_one_word(tmp_path: Path) -> None:
    done = profile(tmp_path, "-qm", "no_such_module", "--steps")
    assert done.returncode == 1
    assert "No module named no_such_module" in done.stderr


def test_a_folder_that_is_in_use_is_told_before_the_script_runs(tmp_path: Path) -> None:
    write(tmp_path, "print('ran')")
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / "mine").touch()
    done = profile(tmp_path, "--out", "run", "train.py")
    assert (done.returncode, done.stdout) == (2, "")
    assert "run: folder exists and is not empty" in done.stderr


def test_a_script_without_loaders_leaves_no_folder(tmp_path: Path) -> None:
    write(tmp_path, "print('ran')")
    assert profile(tmp_path, "train.py").stdout == "ran\n"
    assert not list(tmp_path.glob("reports/profile*"))


def test_a_module_is_run_as_python_runs_it(tmp_path: Path) -> None:
    write(
        tmp_path,
        HEAD + "print(__name__, sys.argv[1:], sum(1 for _ in DataLoader(Slow(160, 0), batch_size=8)))",
        "mine.py",
    )
    done = profile(tmp_path, "--out", "run", "-m", "mine", "--steps", "3")
    assert done.stdout == "__main__ ['--steps', '3'] 20\n"
    assert load(tmp_path / "run").record.suite["script"] == "mine.py --steps 3"


@pytest.mark.slow
def test_a_script_that_cannot_be_recorded_runs_on_and_a_line_says_why(tmp_path: Path) -> None:
    broken = "import loaderbench.script.naming\ndel loaderbench.script.naming.place_of\n"
    write(tmp_path, f"{HEAD}{broken}print(sum(1 for _ in DataLoader(Slow(80, 0), batch_size=8)))\n")
    done = profile(tmp_path, "train.py")
    assert (done.returncode, done.stdout) == (0, "10\n")
    assert done.stderr.count("loaderbench: cannot record this script: ImportError: cannot import name 'place_of'") == 1
