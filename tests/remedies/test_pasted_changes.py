"""Programs and suite changes to paste: what is the user's own stays, and each change goes where it belongs."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import torch
from planted_causes import FOLDER
from ruamel.yaml import YAML

from loaderbench.records import Config
from loaderbench.remedies.program import python_program, yaml_change
from loaderbench.suite import load_suite
from loaderbench.suite.yaml_text import parse_text

LOADER = {"batch_size": 4, "drop_last": True}


def test_a_dataset_of_the_users_own_stays_as_it_is() -> None:
    names: dict[str, Any] = {"dataset": [torch.tensor([number]) for number in range(8)]}
    exec(python_program({"num_workers": 0, "size": 64}, LOADER, None), names)
    assert next(iter(names["loader"])).shape == (4, 1)
    assert "# the dataset was made with size=64" in python_program({"size": 64}, LOADER, None)


def of_pairs(samples: list[int]) -> tuple[list[int], int]:
    """A `collate_fn` of batches that torch cannot stack."""
    return samples, sum(samples)


@pytest.mark.parametrize("change", [{"num_workers": 0}, {"loader": "threads", "threads": 2}])
@pytest.mark.parametrize(
    ("own_code", "batch"),
    [
        ("collate_fn=of_pairs", ([0, 1, 2, 3], 6)),
        ("sampler=sampler, collate_fn=of_pairs", ([7, 6, 5, 4], 22)),
        ("batch_sampler=batch_sampler, collate_fn=of_pairs", ([2, 5], 7)),
    ],
)
def test_a_program_keeps_the_users_sampler_and_collate_fn(
    change: Config, own_code: str, batch: tuple[list[int], int]
) -> None:
    names: dict[str, Any] = {
        "dataset": [*range(8)],
        "of_pairs": of_pairs,
        "sampler": [7, 6, 5, 4, 3],
        "batch_sampler": [[2, 5], [1]],
    }
    program = python_program({**LOADER, **change}, {}, None, own_code)
    exec(program, names)
    assert next(iter(names["loader"])) == batch


def test_a_program_that_sets_up_workers_has_one_worker_init_fn() -> None:
    program = python_program({"worker_threads": 1, "num_workers": 4}, LOADER, None, "worker_init_fn=seed_worker")
    compile(program, "snippet", "exec")
    assert "# in set_up, also call seed_worker(worker_id)\n" in program


@pytest.mark.parametrize("name", ["sampler", "collate_fn"])
@pytest.mark.parametrize("value", [None, "weighted"])
def test_an_option_of_a_target_is_no_code_of_the_loader(name: str, value: str | None) -> None:
    names: dict[str, Any] = {"dataset": [*range(8)]}
    exec(python_program({"loader": "threads", "threads": 2, name: value}, LOADER, None), names)
    assert next(iter(names["loader"])).tolist() == [0, 1, 2, 3]


def test_a_shuffled_loader_stays_shuffled() -> None:
    assert "    shuffle=True,\n" in python_program(LOADER, {}, None, "shuffle=True")
    assert "RandomSampler(dataset)" in python_program({**LOADER, "loader": "threads"}, {}, None, "shuffle=True")
    assert "# the measured loader has shuffle=True\n" in python_program({"loader": "grain"}, {}, None, "shuffle=True")


def test_a_change_is_told_for_a_suite_by_what_it_belongs_to() -> None:
    change: Config = {"num_workers": 2, "presize": 256, "pin_memory": False}
    text = yaml_change(change, change, {}, {"kind": "image_folder"})
    assert text == "loader:\n  num_workers: 2\n  pin_memory: false\ndataset:\n  presize: 256"


TARGET_SUITE = "dataset: {kind: target, target: 'mine:data'}\n"


@pytest.mark.parametrize(
    ("change", "suite", "text"),
    [
        ({"ranks": 4, "num_workers": 2}, "", "loader:\n  num_workers: 2\nsweep:\n  ranks: 4"),
        (
            {"loader": "torch", "num_workers": 4, "threads": None},
            "",
            "loader:\n  loader: torch\n  num_workers: 4",
        ),
        (
            {"loader": "threads", "num_workers": None, "threads": 4},
            "",
            "loader:\n  loader: threads\n  threads: 4",
        ),
        ({"size": 64, "crop": None}, TARGET_SUITE, "dataset:\n  args:\n    size: 64\n    crop: null"),
        ({"target": "mine:faster", "root": "b"}, TARGET_SUITE, "dataset:\n  target: mine:faster\n  args:\n    root: b"),
    ],
)
def test_what_is_pasted_into_a_suite_is_accepted_there(change: Config, suite: str, text: str, tmp_path: Path) -> None:
    assert yaml_change(change, change, {}, None) == text
    pasted = parse_text(suite).value if suite else {}
    for section, options in parse_text(text).value.items():
        pasted[section] = {**pasted.get(section, {}), **options}
    file = tmp_path / "s.yaml"
    file.write_text(json.dumps(pasted))
    assert load_suite(file).suite.name == "s"


def test_a_program_names_no_axis_of_another_loader() -> None:
    config: Config = {"loader": "torch", "num_workers": 2, "threads": 4, "queued": None}
    assert "was made with" not in python_program(config, LOADER, FOLDER)
    assert "was made with" not in python_program({**config, "threads": None}, LOADER, None)


@pytest.mark.parametrize("value", ["16", "a: b", "yes", "plain", None, 0.5, True])
def test_a_change_of_a_suite_loads_as_what_was_measured(value: Any) -> None:
    change = {"precision": value}
    assert YAML(typ="safe").load(yaml_change(change, change, {}, None)) == {"dataset": {"args": change}}


def test_a_dataset_of_whole_batches_is_loaded_without_drop_last() -> None:
    code = python_program({"batch_size": None, "num_workers": 2}, {"drop_last": True}, None)
    assert "batch_size=None" in code
    assert "drop_last" not in code
