"""`loaderbench.tune`: arguments for a `DataLoader`, and answers that are kept."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import torch
from torch.utils.data import DataLoader, Subset

import loaderbench
from loaderbench import ranks
from loaderbench.errors import UsageError
from loaderbench.records import Config, Interval
from loaderbench.tuning import Tuned
from loaderbench.tuning.api import Kept, keep_answer, kept_answer

SCRIPT = """\
import time
import loaderbench
from torch.utils.data import DataLoader, Dataset

class Slow(Dataset):
    def __len__(self): return 320
    def __getitem__(self, index):
        time.sleep(0.004)
        return index

if __name__ == "__main__":
    loader = DataLoader(Slow(), batch_size=8)
    for _ in range(2):
        arguments = loaderbench.tune(loader, budget=20)
        print(arguments["num_workers"] > 0, len(list(DataLoader(Slow(), batch_size=160, **arguments))))
"""


@pytest.fixture(autouse=True)
def own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LOADERBENCH_CACHE", str(tmp_path / "cache"))


@pytest.mark.slow
@pytest.mark.timed  # next to other tests, it measures too few rounds to decide
def test_a_loader_that_waits_gets_workers_and_the_answer_is_kept(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text(SCRIPT)
    done = subprocess.run(
        [sys.executable, "train.py"], cwd=tmp_path, capture_output=True, text=True, timeout=200, check=False
    )
    assert done.stdout == "True 2\n" * 2, done.stderr
    assert done.stderr.count("tuning Slow loader for up to 20 s") == 1
    assert "Slow loader: set num_workers=" in done.stderr


class Rows:
    def __init__(self, samples: int = 100, scale: int = 1) -> None:
        self.samples, self.scale = samples, scale

    def __len__(self) -> int:
        return self.samples

    def __getitem__(self, index: int) -> int:
        return index

    def __repr__(self) -> str:
        return f"<Rows at 0x7f00 scale={self.scale}>"


def loader(dataset: Any = None, **arguments: Any) -> DataLoader[Any]:
    return DataLoader(dataset or Rows(), **{"batch_size": 4, **arguments})


def keep(own: Any, demand: float | None, arguments: Config) -> None:
    keep_answer(own, demand, Kept(arguments, 20.0))


def kept(own: Any, demand: float | None) -> Config | None:
    found = kept_answer(own, demand, 20.0)
    return None if found is None else found.arguments


def test_an_answer_is_kept_for_the_same_data_arguments_and_demand() -> None:
    keep(loader(), 100.0, {"num_workers": 3, "persistent_workers": True})
    assert kept(loader(), 100.0) == {"num_workers": 3, "persistent_workers": True}


@pytest.mark.parametrize(
    ("changed", "demand"),
    [
        (loader(), 200.0),
        (loader(), None),
        (loader(Rows(101)), 100.0),
        (loader(Rows(scale=2)), 100.0),
        (loader(batch_size=8), 100.0),
        (loader(num_workers=1), 100.0),
        (loader(collate_fn=list), 100.0),
        (loader(shuffle=True), 100.0),
        (loader(drop_last=True), 100.0),
    ],
)
def test_anything_that_differs_is_another_question(changed: Any, demand: float | None) -> None:
    keep(loader(), 100.0, {"num_workers": 3})
    assert kept(changed, demand) is None


def test_another_machine_or_version_is_another_question(monkeypatch: pytest.MonkeyPatch) -> None:
    keep(loader(), None, {"num_workers": 3})
    with monkeypatch.context() as changed:
        changed.setattr("loaderbench.tuning.api.cpus_allotted", lambda: 64.0)
        assert kept(loader(), None) is None
    with monkeypatch.context() as changed:
        changed.setattr("loaderbench.tuning.api.version", lambda _: "99")
        assert kept(loader(), None) is None
    assert kept(loader(), None) == {"num_workers": 3}


def test_a_file_that_is_spoilt_counts_as_none(tmp_path: Path) -> None:
    keep(loader(), None, {"num_workers": 3})
    (file,) = (tmp_path / "cache" / "tuned").iterdir()
    for text in ("", "[1]", "{", "{}", '{"num_workers": 3}', '{"arguments": 3, "budget_s": 20}'):
        file.write_text(text)
        assert kept(loader(), None) is None


def test_options_of_workers_become_a_function_that_sets_them_up() -> None:
    keep(loader(), None, {"num_workers": 2, "worker_threads": 1})
    found = loaderbench.tune(loader())
    setup = found.pop("worker_init_fn")
    assert found == {"num_workers": 2, "prefetch_factor": None, "persistent_workers": False}
    before = torch.get_num_threads()
    setup(0)
    assert torch.get_num_threads() == 1
    torch.set_num_threads(before)


@pytest.mark.parametrize(("workers", "said"), [(0, True), (2, False)])
def test_without_workers_a_line_says_to_call_that_function(
    workers: int, said: bool, capsys: pytest.CaptureFixture[str]
) -> None:
    keep(loader(), None, {"num_workers": workers, "keep_memory": True})
    assert callable(loaderbench.tune(loader())["worker_init_fn"])
    assert ("call it with 0 before training" in capsys.readouterr().err) is said


@pytest.mark.parametrize("by_launcher", [True, False])
def test_one_of_several_ranks_keeps_its_arguments_with_a_warning(
    monkeypatch: pytest.MonkeyPatch, by_launcher: bool
) -> None:
    if by_launcher:  # Lightning's sets no RANK
        monkeypatch.setenv("WORLD_SIZE", "2")
    else:
        monkeypatch.setitem(ranks._groups, os.getpid(), (1, 2))
    with pytest.warns(RuntimeWarning, match="one of several ranks; tune in a single process"):
        assert loaderbench.tune(loader(num_workers=1)) == {
            "num_workers": 1,
            "prefetch_factor": 2,
            "persistent_workers": False,
        }


def test_a_loader_that_cannot_be_tried_keeps_its_arguments_with_a_warning(tmp_path: Path) -> None:
    dataset = Rows()
    told = pytest.warns(RuntimeWarning, match=r"was not tuned: the dataset \(Rows\) holds an open file")
    with (tmp_path / "file").open("wb+") as dataset.file, told:  # type: ignore[attr-defined]
        assert loaderbench.tune(loader(dataset)) == {"num_workers": 0}


ENDLESS = [float("nan"), float("inf"), 1e300, 10**400, "9" * 309, "9" * 309 + "h"]


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ({"loader": [1]}, "tune() expects a DataLoader, got list"),
        ({"demand": "1000"}, "demand must be above 0 samples/s, got '1000'"),
        ({"demand": 0}, "demand must be above 0 samples/s, got 0"),
        ({"demand": float("nan")}, "demand must be above 0 samples/s, got nan"),
        ({"budget": "1s"}, "budget: 1s is too short to compare anything; use 5s or more"),
        ({"demand": 1e-40}, "demand: expected a number between 1e-30 and 1e+30 in magnitude"),
        ({"demand": 10**400}, "demand: expected a number between 1e-30 and 1e+30 in magnitude"),
        *(({"budget": budget}, "budget: expected a number between 1e-30 and 1e+30") for budget in ENDLESS),
        ({"budget": None}, "budget: expected seconds, or a duration such as 90s, got None"),
        ({"budget": "soon"}, "budget: expected a duration such as 90s"),
    ],
)
def test_bad_input_is_one_line(arguments: dict[str, Any], said: str) -> None:
    with pytest.raises(UsageError) as raised:
        loaderbench.tune(**{"loader": loader(), **arguments})
    assert said in str(raised.value)


def test_answers_are_kept_apart_by_what_datasets_hold() -> None:
    keep(loader(Subset(Rows(scale=1), range(50))), None, {"num_workers": 2})
    assert kept(loader(Subset(Rows(scale=1), range(50))), None) == {"num_workers": 2}
    assert kept(loader(Subset(Rows(scale=2), range(50))), None) is None
    assert kept(loader(Rows(scale=3)), None) is None


def test_the_init_function_of_the_loader_is_among_its_arguments(capsys: pytest.CaptureFixture[str]) -> None:
    own = loader(num_workers=1, worker_init_fn=print)
    keep(own, None, {"num_workers": 2})
    found = loaderbench.tune(own)
    assert (found["num_workers"], found["worker_init_fn"]) == (2, print)
    assert "arguments of an earlier call, kept in" in capsys.readouterr().err


def test_caveats_are_printed_with_the_answer_and_again_where_it_is_kept(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    present = {"num_workers": 1, "prefetch_factor": 2, "persistent_workers": False}
    changed = {**present, "in_order": False}
    found = Tuned(present=present, arguments=changed, gain=Interval(1.5, 1.4, 1.6), pairs=5, caveats=("Order differs",))
    monkeypatch.setattr("loaderbench.tuning.api.tune_loader", lambda *_: found)
    for first in ("tuning Rows loader for up to 20 s", "arguments of an earlier call"):
        assert loaderbench.tune(loader(num_workers=1)) == changed
        said = capsys.readouterr().err
        assert first in said
        assert said.endswith("\nloaderbench: Caveat: Order differs\n")


def test_a_loader_that_accelerate_has_prepared_is_tuned_as_the_one_within(monkeypatch: pytest.MonkeyPatch) -> None:
    inner = DataLoader(Rows(), batch_size=4)  # type: ignore[var-annotated, arg-type]
    prepared = DataLoader(Rows(), batch_size=4)  # type: ignore[var-annotated, arg-type]
    prepared.base_dataloader = inner  # type: ignore[attr-defined]
    asked: list[Any] = []

    def tune_loader(loader: Any, *_: Any) -> Tuned:
        asked.append(loader)
        return Tuned(present={"num_workers": 0}, arguments={"num_workers": 2})

    monkeypatch.setattr("loaderbench.tuning.api.tune_loader", tune_loader)
    assert loaderbench.tune(prepared)["num_workers"] == 2
    assert asked == [inner]
