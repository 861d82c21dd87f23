"""Which thread trains, and what is said of a loop in another one."""

from __future__ import annotations

from collections.abc import Callable
from threading import Thread, get_ident

import torch
from saved_recordings import saved_at, trial_of

from loaderbench.conclusion import conclude
from loaderbench.script.missing import WHY_NO_WAIT, of_a_background_thread, with_reason
from loaderbench.script.model_calls import TrainingThread


def in_a_thread(call: Callable[[], object]) -> None:
    thread = Thread(target=call)
    thread.start()
    thread.join()


def test_it_is_the_one_that_calls_a_module_with_parameters_first() -> None:
    found = TrainingThread()
    model, transform = torch.nn.Linear(2, 2), torch.nn.Flatten()
    model(torch.zeros(1, 2))  # before anybody looks
    found.look()
    in_a_thread(lambda: transform(torch.zeros(1, 2)))
    assert not found.is_another(get_ident() + 1)
    model(torch.zeros(1, 2))
    in_a_thread(lambda: model(torch.zeros(1, 2)))
    assert found.is_another(get_ident() + 1)
    assert not found.is_another(get_ident())
    assert not found.is_another(None)


def test_it_is_looked_for_until_it_is_found_and_no_longer() -> None:
    hooks = torch.nn.modules.module._global_forward_pre_hooks
    found, before = TrainingThread(), len(hooks)
    found.look()
    found.look()
    assert len(hooks) == before + 1
    torch.nn.Linear(2, 2)(torch.zeros(1, 2))
    found.look()
    assert len(hooks) == before
    other = TrainingThread()
    other.look()
    other.end()
    assert len(hooks) == before


def test_a_reason_is_replaced_where_something_is_missing() -> None:
    (recording,) = saved_at([30])
    measured = recording.measured
    assert "step_stages" in trial_of(recording).not_measured
    other = with_reason(measured, "step_stages", "another reason")
    assert other.trials[0].not_measured["step_stages"] == "another reason"
    assert with_reason(measured, "stages", "another reason") == measured


def test_a_loop_whose_wait_is_not_known_has_no_cause_and_its_stages_stay() -> None:
    (recording,) = saved_at([30])
    run = conclude(of_a_background_thread(recording.measured))
    assert (run.verdict.bound, run.verdict.stage) == ("unknown", None)
    assert run.verdict.headline == f"cause unknown; {WHY_NO_WAIT}"
    (trial,) = run.trials
    assert trial.data_wait_share is None
    assert trial.not_measured["data_wait_share"] == WHY_NO_WAIT
    assert trial.stages == trial_of(recording).stages
