"""Each remedy of a cause fires on its own cause and on no other; what is so already is not advised."""

from __future__ import annotations

import json
from dataclasses import replace
from itertools import combinations
from pathlib import Path

import pytest
from planted_causes import CAUSES, CONFIG, CONVERTED, FACTS, FOLDER, NARROW, advice, diagnosis, told
from sweeps import answers, findings

from loaderbench.diagnosis.facts import Facts
from loaderbench.records import Candidate, Recommendation
from loaderbench.remedies import (
    REMEDIES,
    Findings,
    candidates_for,
    dali_loader,
    gpu_decode_dali,
    recommend,
    region_decode,
)
from loaderbench.remedies.by_cause import CauseRemedy, MeasuredFirst
from loaderbench.remedies.gpu_decode import NO_GPU
from loaderbench.remedies.gpu_decode_dali import NOT_INSTALLED

OF_THE_LOOP = ("faster_loop", "between_epochs")
"""Fixes for code outside of the loader, whose gain does not depend on whether training waits for data."""


def test_every_remedy_of_a_cause_has_a_case_here() -> None:
    assert {r.id for r in REMEDIES if isinstance(r, CauseRemedy | MeasuredFirst)} == set(CAUSES)


@pytest.mark.parametrize("remedy", CAUSES)
def test_a_remedy_fires_on_its_own_cause(remedy: str) -> None:
    found = next(answer for answer in advice(CAUSES[remedy]) if answer.id == remedy)
    assert (found.status, found.basis, found.gain) == ("open", "heuristic", None)
    assert found.not_measured == {"gain": found.reason or "no trial measured this fix"}
    assert found.evidence == ("why", "waits")
    assert "{" not in found.title
    assert found.change or found.reason, "what no trial can show says why"


@pytest.mark.parametrize("remedy", CAUSES)
def test_a_remedy_is_silent_where_it_has_nothing_to_do(remedy: str) -> None:
    case = CAUSES[remedy]
    if case.silent:
        assert remedy not in {answer.id for answer in told(replace(diagnosis(case), **case.silent))}  # type: ignore[arg-type]
    other = replace(case, stage="", limit="none", bound="compute", traits={}, accelerator=False)
    assert (remedy in {answer.id for answer in advice(other)}) == (remedy in OF_THE_LOOP)


@pytest.mark.parametrize("remedy", CAUSES)
def test_a_change_already_in_place_is_not_a_candidate(remedy: str) -> None:
    found = replace(diagnosis(CAUSES[remedy]), profile=False)
    for candidate in candidates_for(found):
        known = {**(found.options or {}), **found.config}
        assert any(known.get(name) != value for name, value in candidate.change.items())


def test_threads_are_not_advised_next_to_busy_threads_of_the_main_process() -> None:
    busy = replace(FACTS, main=replace(NARROW.loads, other_threads_cpu_share=0.9))  # type: ignore[type-var]
    for facts, advised in ((FACTS, True), (busy, False)):
        found = {answer.id for answer in advice(replace(CAUSES["thread_loader"], facts=facts))}
        assert ("thread_loader" in found) is advised


def test_where_more_workers_do_not_fit_cheaper_work_is_tried() -> None:
    held = diagnosis(replace(CAUSES["scaled_decode"], limit="workers"))
    assert "scaled_decode" not in {found.id for found in candidates_for(held)}
    assert "scaled_decode" in {found.id for found in candidates_for(replace(held, workers_fit=False))}


@pytest.mark.parametrize(("traits", "warned"), [({"undivided": "Tar"}, True), ({"stream": "Tar"}, False), ({}, False)])
def test_more_workers_of_a_stream_that_does_not_divide_its_samples_carry_a_caveat(
    traits: dict[str, str], warned: bool
) -> None:
    [more] = [found for found in advice(replace(CAUSES["more_workers"], traits=traits)) if found.id == "more_workers"]
    assert ("First divide Tar among workers (get_worker_info)" in (more.caveat or "")) is warned


def test_a_loader_that_keeps_up_is_advised_nothing_but_to_stay() -> None:
    kept = advice(replace(CAUSES["more_workers"], bound="compute", limit="none"))
    assert [(found.id, found.status) for found in kept] == [("loader_is_innocent", "already_ok")]
    assert advice(replace(CAUSES["more_workers"], bound="unknown", limit=None)) == []


def test_the_loader_of_a_busy_device_is_called_innocent() -> None:
    found = diagnosis(replace(CAUSES["more_workers"], bound="compute", limit="none"))
    sweep = recommend(Findings([], [], None, found.config, {}, False, diagnosis=found))
    innocent = next(answer for answer in sweep if answer.id == "loader_is_innocent")
    assert innocent.status == "already_ok"


def test_a_change_names_a_value_that_is_not_there_yet() -> None:
    for case in CAUSES.values():
        for found in advice(case):
            assert all(CONFIG.get(name, "") != value or name == "num_workers" for name, value in found.change.items())
    ids = [found.id for found in advice(CAUSES["persistent_workers"], persistent_workers=True)]
    assert ids == ["larger_epochs"]


@pytest.mark.parametrize("remedy", CAUSES)
def test_no_two_candidates_of_one_cause_contradict_each_other(remedy: str) -> None:
    """Two that change one argument are alternatives, of which one is kept; the worker count has one remedy at most."""
    found = candidates_for(replace(diagnosis(CAUSES[remedy]), profile=False))
    for one, other in combinations(found, 2):
        both = one.change.keys() & other.change.keys()
        assert both <= {"decoder", "transform"}, f"{one.id} and {other.id} both change {both}"


@pytest.mark.parametrize(
    ("remedy", "facts", "title"),
    [
        ("cpu_quota", NARROW, "Widen the affinity of the workers to all CPUs"),
        ("cpu_quota", FACTS, "Widen the CPU affinity of this process"),
        ("cpu_quota", replace(FACTS, throttled_share=0.9), "Raise the CPU quota"),
        ("move_into_workers", FACTS, "Move work from the main process into the workers"),
        (
            "move_into_workers",
            replace(FACTS, workers=0),
            "Load in DataLoader worker processes, not in the main process",
        ),
        ("move_into_workers", CONVERTED, "Move the code of prepared (train.py:8) into collate_fn"),
        (
            "move_into_workers",
            replace(CONVERTED, workers=0),
            "Move the code of prepared (train.py:8) into collate_fn, and load in worker processes",
        ),
    ],
)
def test_a_title_names_only_what_there_is(remedy: str, facts: Facts, title: str) -> None:
    (found,) = [one for one in advice(replace(CAUSES[remedy], facts=facts)) if one.id == remedy]
    assert found.title == title


def test_workers_that_were_measured_slower_are_not_advised() -> None:
    slower = replace(CAUSES["move_into_workers"], facts=replace(FACTS, workers=0, workers_are_slower=True))
    assert "move_into_workers" not in [one.id for one in advice(slower)]


def test_more_workers_are_as_many_as_the_cpus_that_are_left_can_feed() -> None:
    for remedy in ("more_workers", "main_process_loading", "fewer_workers"):
        assert advice(CAUSES[remedy])[0].change == {"num_workers": 4}


def test_the_expected_gain_of_more_workers_comes_from_the_operational_bound() -> None:
    found = candidates_for(replace(diagnosis(CAUSES["more_workers"]), profile=False))
    assert next(c.estimate for c in found if c.id == "more_workers") == pytest.approx(1.6), (
        "the CPUs are the next bound"
    )


def test_a_dataset_of_the_users_own_gets_code_where_a_folder_gets_a_trial() -> None:
    own = replace(diagnosis(replace(CAUSES["faster_decoder"], options=None)), profile=False)
    assert "faster_decoder" not in {candidate.id for candidate in candidates_for(own)}
    card = next(found for found in told(own) if found.id == "faster_decoder")
    assert "decode_image" in (card.snippet or "")
    assert card.reason == "Not measured: it changes your own code"


def test_a_gpu_decodes_in_a_trial_where_there_is_one_and_in_words_where_one_is_named() -> None:
    def found(**changed: object) -> tuple[list[str], list[str | None]]:
        case = replace(CAUSES["gpu_decode"], options=FOLDER)
        one = replace(diagnosis(case), profile=False, **changed)  # type: ignore[arg-type]
        advised = [card.reason for card in told(one) if card.id == "gpu_decode"]
        return [c.id for c in candidates_for(one) if c.id == "gpu_decode"], advised

    assert found() == (["gpu_decode"], [None])
    assert found(accelerator=False, gpu_named=True) == ([], [NO_GPU])
    assert found(accelerator=False) == ([], [])
    assert found(options={**FOLDER, "transform": "mine:crop"}) == ([], ["Not measured: it changes your own code"])
    assert found(options={**FOLDER, "decoder": "device"}) == ([], [])


def test_dali_decodes_in_a_trial_where_it_is_installed_and_is_named_only_where_there_is_a_gpu_for_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def found(*, installed: bool = True, **changed: object) -> tuple[list[str], list[str | None]]:
        monkeypatch.setattr(gpu_decode_dali, "is_installed", lambda: installed)
        one = replace(diagnosis(CAUSES["gpu_decode_dali"]), profile=False, **changed)  # type: ignore[arg-type]
        advised = [card.reason for card in told(one) if card.id == "gpu_decode_dali"]
        return [c.id for c in candidates_for(one) if c.id == "gpu_decode_dali"], advised

    assert found() == (["gpu_decode_dali"], [None])
    assert found(installed=False) == ([], [NOT_INSTALLED])
    for installed in (True, False):
        assert found(installed=installed, accelerator=False, gpu_named=True) == ([], [])
        assert found(installed=installed, gpu_kind="mps") == ([], [])
        assert found(installed=installed, options={**FOLDER, "transform": "mine:crop"}) == ([], [])
        assert found(installed=installed, options={**FOLDER, "decoder": "device"}) == ([], [])


def test_the_loader_of_dali_is_tried_where_it_is_installed_and_advised_with_its_command_where_not(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def found(*, installed: bool = True, **changed: object) -> tuple[list[Candidate], list[str | None]]:
        monkeypatch.setattr(type(dali_loader.DALI), "is_installed", lambda _: installed)
        one = replace(diagnosis(CAUSES["dali_loader"]), profile=False, **changed)  # type: ignore[arg-type]
        advised = [card.reason for card in told(one) if card.id == "dali_loader"]
        return [c for c in candidates_for(one) if c.id == "dali_loader"], advised

    (tried,), advised = found()
    assert (tried.change, advised) == ({"loader": "dali", "threads": 4}, [None])
    assert found(installed=False) == ([], [dali_loader.NOT_INSTALLED])
    for installed in (True, False):
        assert found(installed=installed, options={**FOLDER, "decoder": "device"}) == ([], [])
        assert found(installed=installed, config={**CONFIG, "loader": "dali"}) == ([], [])
        assert found(installed=installed, options={**FOLDER, "storage": "s3://b/train"}) == ([], [])


def test_regions_are_decoded_in_a_trial_where_nvimagecodec_is_installed_and_advised_with_its_command_where_not(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def found(*, installed: bool = True, **options: object) -> tuple[list[Candidate], list[str | None]]:
        monkeypatch.setattr(region_decode, "is_installed", lambda: installed)
        one = replace(diagnosis(CAUSES["region_decode"]), options={**FOLDER, **options})
        advised = [card.reason for card in told(one) if card.id == "region_decode"]
        return [c for c in candidates_for(one) if c.id == "region_decode"], advised

    change = {"decoder": "nvimagecodec", "transform": "imagenet_train_region"}
    (tried,), advised = found()
    assert (tried.change, advised) == (change, [None])
    assert found(installed=False) == ([], [region_decode.NOT_INSTALLED])
    scaled = found(decoder="pillow_lazy", transform="imagenet_train_scaled")[0]
    assert [candidate.change for candidate in scaled] == [change]
    for elsewhere in (change, {"decoder": "device"}, {"image_cache": "shared_memory"}, {"transform": "imagenet_eval"}):
        assert found(**elsewhere) == ([], [])


def test_snippets_of_arguments_can_be_run_and_others_say_what_to_write() -> None:
    found = advice(CAUSES["out_of_order"])[0]
    assert "in_order=False" in (found.snippet or "")
    assert "sched_setaffinity" in (advice(CAUSES["cpu_quota"])[0].snippet or "")


def test_a_throttled_quota_is_raised_by_its_own_flags_and_a_mask_by_others() -> None:
    throttled = advice(replace(CAUSES["cpu_quota"], facts=replace(FACTS, throttled_share=0.6)))[0]
    assert throttled.title == "Raise the CPU quota"
    assert "docker run --cpus=" in (throttled.snippet or "")
    assert "affinity" not in (throttled.snippet or "")
    masked = advice(replace(CAUSES["cpu_quota"], facts=FACTS))[0]
    assert masked.title == "Widen the CPU affinity of this process"
    assert "taskset" in (masked.snippet or "")


def test_mixed_precision_fits_the_data_and_the_kind_of_gpu() -> None:
    def advised(**parts: object) -> Recommendation | None:
        found = replace(diagnosis(CAUSES["mixed_precision"]), profile=True, **parts)  # type: ignore[arg-type]
        return next((one for one in told(found) if one.id == "mixed_precision"), None)

    text = advised(traits={"no_images": "text"})
    assert text is not None
    assert text.title == "Use mixed precision"
    assert "channels_last" not in (text.snippet or "")
    images = advised()
    assert images is not None
    assert "channels_last" in (images.snippet or "")
    assert advised(gpu_kind="mps") is None
    transfer = diagnosis(CAUSES["fewer_copies"])
    assert "fewer_copies" in {one.id for one in told(transfer)}
    assert "fewer_copies" not in {one.id for one in told(replace(transfer, gpu_kind="xpu"))}


@pytest.mark.parametrize(("cpus", "more"), [(2, True), (64, False)])
def test_workers_are_more_than_cpus_only_where_they_are(cpus: int, more: bool) -> None:
    facts = replace(CAUSES["workers_beyond_cores"].facts, cpus=cpus, workers=8)
    found = next(one for one in advice(replace(CAUSES["workers_beyond_cores"], facts=facts)) if one.change)
    assert found.title == "Set num_workers=32" + (" (more than CPUs)" if more else "")


def test_a_wait_just_below_the_limit_is_not_rounded_up_to_it() -> None:
    case = replace(CAUSES["more_workers"], bound="compute", limit="none", facts=replace(FACTS, wait_share=0.0496))
    assert "at most the data wait: 4.9% of step time" in (advice(case)[0].reason or "")


def test_the_code_for_slow_samples_reads_a_run(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    slow = {"wall_s": 0.7, "index": 3, "path": "a.jpg"}
    trials = [
        {"config": {"num_workers": 0}, "sample_times": None},
        {"config": {"num_workers": 1}, "sample_times": {"slowest": []}},
        {"config": {"num_workers": 2}, "sample_times": {"slowest": [slow]}},
    ]
    run = tmp_path / "run.json"
    run.write_text(json.dumps({"best": {"config": {"num_workers": 2}}, "trials": trials}))
    code = advice(CAUSES["slow_samples"])[0].snippet or ""
    exec(code.replace("reports/RUN/run.json", str(run)), {})
    assert capsys.readouterr().out == "0.7 3 a.jpg\n"


def test_more_workers_are_not_advised_where_they_did_not_fit() -> None:
    found = diagnosis(CAUSES["more_workers"])
    assert "more_workers" in {one.id for one in candidates_for(found)}
    assert "more_workers" not in {one.id for one in candidates_for(replace(found, workers_fit=False))}


@pytest.mark.parametrize("loader", ["webdataset", "litdata", "streaming", "dali"])
def test_decoded_images_are_not_cached_for_a_loader_that_reads_them_otherwise(loader: str) -> None:
    found = diagnosis(CAUSES["memory_cache"])
    assert "memory_cache" in {one.id for one in candidates_for(found)}
    assert "memory_cache" not in {one.id for one in candidates_for(replace(found, loader={"loader": loader}))}


def test_threads_of_a_training_step_are_not_limited_in_the_workers() -> None:
    found = diagnosis(CAUSES["library_threads"])
    assert "library_threads" in {one.id for one in told(found)}
    quiet = replace(found.facts, loads=replace(found.facts.loads, other_threads_cpu_share=0.02))
    assert "library_threads" not in {one.id for one in told(replace(found, facts=quiet))}


def test_workers_beyond_cores_are_not_advised_where_more_did_not_fit() -> None:
    found = diagnosis(CAUSES["workers_beyond_cores"])
    assert "workers_beyond_cores" in {one.id for one in told(found)}
    assert "workers_beyond_cores" not in {one.id for one in told(replace(found, workers_fit=False))}


def test_what_the_sweep_did_not_measure_is_advised_though_its_best_is_in_place() -> None:
    """All 4 workers are busy with CPUs left, and the sweep ends at 4."""
    found = diagnosis(CAUSES["more_workers"])
    axes = {"num_workers": [0, 1]}
    swept = findings(axes, {"num_workers": 1}, {("num_workers", 1): 2.0}, diagnosis=found)
    advised = answers(swept)["more_workers"]
    assert (advised.status, advised.basis) == ("open", "heuristic")
    known = findings({"num_workers": [0, 1, 4]}, {"num_workers": 1}, {("num_workers", 1): 2.0}, diagnosis=found)
    assert answers(known)["more_workers"].status == "already_ok"


def test_with_swapped_memory_half_of_the_workers_are_advised_unless_they_were_no_faster() -> None:
    case = replace(CAUSES["mapped_dataset"], facts=replace(CAUSES["mapped_dataset"].facts, workers=4))
    fewer = next(found for found in advice(case) if found.id == "fewer_workers")
    assert fewer.change == {"num_workers": 2}
    measured = replace(case, facts=replace(case.facts, fewer_are_no_faster=True))
    assert "fewer_workers" not in {found.id for found in advice(measured)}
