"""What the page says to type does what it says: a suite's file, its folder, and values that YAML reads as they are."""

import shlex
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import run_factory as runs
from blocks import cards, failures

from loaderbench.plan import make_plan
from loaderbench.records import Config, RunRecord
from loaderbench.records.words import OWN_LOADER
from loaderbench.report.document import build_document
from loaderbench.report.html import render_html
from loaderbench.report.rerun_command import command_for_change, command_for_configuration
from loaderbench.suite import Override, Suite, load_suite
from loaderbench.suite.yaml_text import parse_text

BASE: Config = {"batch_size": 32, "num_workers": 0}


def run(**changed: Any) -> RunRecord:
    return replace(runs.typical(), suite_file="suites/images.yaml", **changed)


def words_of(command: str | None) -> list[str]:
    assert command is not None
    return shlex.split(command)


def test_a_change_is_measured_beside_what_it_changes() -> None:
    command = command_for_change(run(), {"num_workers": 2}, BASE)

    assert command == ("loaderbench run suites/images.yaml -P batch_size=32 -P num_workers=0,2 --rounds 6 --no-verify")


def test_an_option_starts_from_the_suite_s_own_value() -> None:
    suite = {"dataset": {"decoder": "pillow"}}

    assert "decoder=pillow,torchvision" in words_of(
        command_for_change(run(suite=suite), {"decoder": "torchvision"}, BASE)
    )
    assert command_for_change(run(suite={}), {"decoder": "torchvision"}, BASE) is None


def test_the_folder_that_a_flag_gave_is_given_again() -> None:
    absolute, relative = ({"dataset": {"root": root}} for root in ("/data/my train", "train"))

    assert words_of(command_for_configuration(run(suite=absolute), BASE))[3:5] == ["--data", "/data/my train"]
    assert "--data" not in words_of(command_for_configuration(run(suite=relative), BASE))


def test_the_folder_of_an_axis_is_no_flag() -> None:
    """`--data` would remove the axis."""
    plan = replace(runs.typical().plan, axes={"root": ["/a", "/b"]})
    found = run(suite={"dataset": {"root": "/data"}}, plan=plan)
    words = words_of(command_for_configuration(found, {"root": "/a"}))
    assert ("--data" in words, "root=/a" in words) == (False, True)


@pytest.mark.parametrize(
    "value", ["1", "true", "null", "x,y", "", "a: b", "#c", "[d]", "imagenet_train", "my.mod:make"]
)
def test_a_text_is_read_back_as_the_text_it_was(value: str) -> None:
    words = words_of(command_for_configuration(run(), {"transform": value}))
    _, _, given = words[words.index("-P") + 1].partition("=")

    assert parse_text(f"[{given}]").value == [value]


@pytest.mark.parametrize("name", ["-rf.yaml", "a\nb.yaml", "caf\udce9.yaml"])
def test_what_is_no_file_to_type_has_no_command(name: str) -> None:
    assert command_for_configuration(replace(run(), suite_file=name), BASE) is None


def test_the_loader_of_a_script_that_was_tuned_is_no_suite_to_run() -> None:
    suite = {"dataset": {"kind": "target", "target": OWN_LOADER}}
    tuned = replace(run(), suite=suite, suite_file="/home/me/train", complete=False)
    assert command_for_configuration(tuned, BASE) is None
    assert command_for_change(tuned, {"num_workers": 2}, BASE) is None
    assert "--resume" not in render_html(build_document(tuned))
    assert "--resume" in render_html(build_document(replace(tuned, suite={})))


def test_a_loop_of_one_s_own_is_run_by_oneself() -> None:
    assert command_for_configuration(run(kind="profile"), BASE) is None
    assert command_for_change(run(kind="profile"), {"num_workers": 2}, BASE) is None


def test_cards_and_failures_say_what_to_type() -> None:
    first = cards(build_document(runs.typical()))[0]
    groups = failures(build_document(runs.all_failed()))

    assert "num_workers=0,2" in (first.command or "")
    assert all("--rounds 1" in (group.command or "") for group in groups)


LOADERS = Path(__file__).parents[2] / "suites" / "loaders.yaml"
TORCH: Config = {"loader": "torch", "num_workers": 2, "threads": None}
THREADS: Config = {"loader": "threads", "num_workers": None, "threads": 4}


def accepted(command: str | None) -> Suite:
    """The suite that the command measures."""
    words = words_of(command)
    flags = [words[place + 1] for place, word in enumerate(words) if word == "-P"]
    overrides = [
        Override(("sweep", axis), parse_text(f"[{values}]").value, f"-P {axis}")
        for axis, _, values in (flag.partition("=") for flag in flags)
    ]
    return load_suite(LOADERS, overrides).suite


def test_another_loader_is_measured_beside_this_one_by_what_each_takes() -> None:
    command = command_for_change(run(), {**THREADS}, TORCH)
    assert words_of(command)[3:9] == ["-P", "loader=torch,threads", "-P", "num_workers=2", "-P", "threads=4"]
    suite = accepted(command)
    assert len(make_plan(suite, cpus_allotted=4.0, accelerator=False).configurations) == 2


@pytest.mark.parametrize("config", [TORCH, THREADS])
def test_a_config_of_one_loader_is_measured_without_the_axes_of_the_others(config: Config) -> None:
    suite = accepted(command_for_configuration(run(), config))
    taken = {axis: [value] for axis, value in config.items() if value is not None}
    assert suite.sweep == taken


def test_what_is_null_for_the_loader_itself_is_still_said() -> None:
    config: Config = {"loader": "torch", "multiprocessing_context": None}
    assert "multiprocessing_context=null" in words_of(command_for_configuration(run(), config))
