"""What trying a remedy gave becomes its card: a gain, or the reason why it is none; all that was kept stands first."""

from __future__ import annotations

from dataclasses import replace

import pytest
from planted_causes import CAUSES, FOLDER, diagnosis
from sweeps import answers, measured

from loaderbench.records import Config, Failure, PixelChange, Recommendation, Trial, Tried, Verification
from loaderbench.remedies import Findings, recommend
from loaderbench.statistics.judging import judged

PRESENT: Config = {"num_workers": 2}
BASELINE: Config = {"num_workers": 0}
UINT8, DECODER = {"normalize": "device"}, {"decoder": "torchvision"}


def pairs(first: int, rates: list[tuple[Config, float | None]], rounds: int = 5) -> list[Trial]:
    """So many rounds in which each configuration ran once; `None` is a trial that failed."""
    return [_trial(config, first + n, n, rate) for n in range(rounds) for config, rate in rates]


def _trial(config: Config, number: int, step: int, rate: float | None) -> Trial:
    known = {"id": f"v{number}-{len(config)}", "config": config, "round": number}
    if rate is None:
        return Trial(role="remedy", **known, status="failed", failure=Failure("oom", "no memory is left", "less"))
    wobble = 1 + (step % 3 - 1) / 100 * len(config)
    return Trial(role="remedy", **known, status="completed", samples_per_s=rate * wobble)


def told(
    tried: list[Tried],
    trials: list[Trial],
    config: Config = PRESENT,
    cause: str = "transforms_v2_uint8",
    baseline: Config = BASELINE,
) -> dict[str, Recommendation]:
    found = diagnosis(CAUSES[cause])
    verification = Verification(present=PRESENT, config=config, tried=tuple(tried), ended="")
    findings = Findings(
        [],
        [],
        None,
        baseline,
        {},
        False,
        diagnosis=found,
        verification=judged(verification, trials, baseline),
        remedy_trials=trials,
        options=dict(FOLDER),
        profile=True,
    )
    return {answer.id: answer for answer in recommend(findings)}


def tried(id_: str, change: Config, against: Config = PRESENT, *, accepted: bool = False) -> Tried:
    return Tried(
        id=id_, change=change, against=against, accepted=accepted, psnr_db=41.0 if "decoder" in change else None
    )


def test_a_gain_is_a_card_with_its_interval_both_rates_and_the_change_of_pixels() -> None:
    trials = pairs(1, [(PRESENT, 100.0), ({**PRESENT, **DECODER}, 130.0)])
    card = told([tried("faster_decoder", DECODER)], trials)["faster_decoder"]
    assert (card.status, card.basis) == ("open", "measured")
    assert card.gain is not None
    assert card.gain.lo is not None
    assert card.gain.lo > 1.2
    assert card.evidence[0].startswith("num_workers=2: 100")
    assert card.evidence[1].startswith("with decoder=torchvision: 129")
    assert card.pixels == PixelChange(41.0)
    assert card.changes_pixels == "changes pixels, PSNR 41 dB"
    assert card.costs[-1] == "Changes pixels: PSNR 41 dB"
    assert "decode_image" in (card.snippet or "")
    assert len(card.trials) == 10


def test_a_failure_without_words_is_named_by_its_kind() -> None:
    trials = pairs(1, [(PRESENT, 100.0), ({**PRESENT, **DECODER}, None)], 1)
    failed = [replace(trial, failure=Failure("oom", "\n", "")) if trial.failure else trial for trial in trials]
    assert "oom" in (told([tried("faster_decoder", DECODER)], failed)["faster_decoder"].reason or "")


@pytest.mark.parametrize(
    ("rate", "rounds", "status", "said"),
    [(100.5, 5, "already_ok", "Tried, no gain above 10%: 1.0"), (60.0, 5, "already_ok", "Tried, slower: 0.6"),
     (130.0, 2, "not_checked", "Tried, undecided after 2 pairs: 1.29"),
     (None, 1, "not_checked", "Tried, not measured: oom: no memory is left")],
)  # fmt: skip
def test_what_gives_nothing_says_what_was_seen(rate: float | None, rounds: int, status: str, said: str) -> None:
    trials = pairs(1, [(PRESENT, 100.0), ({**PRESENT, **DECODER}, rate)], rounds)
    card = told([tried("faster_decoder", DECODER)], trials)["faster_decoder"]
    assert card.status == status
    assert said in (card.reason or "")


def test_the_title_names_the_worker_count_that_was_tried() -> None:
    trials = pairs(1, [(PRESENT, 100.0), ({"num_workers": 6}, 130.0)])
    card = told([tried("more_workers", {"num_workers": 6})], trials, cause="more_workers")["more_workers"]
    assert (card.title, card.change) == ("Set num_workers=6", {"num_workers": 6})


def test_what_was_changed_to_make_a_fix_fit_is_in_its_title() -> None:
    change: Config = {"num_workers": 6, "prefetch_factor": 1}
    trials = pairs(1, [(PRESENT, 100.0), ({**PRESENT, **change}, 130.0)])
    card = told([tried("more_workers", change)], trials, cause="more_workers")["more_workers"]
    assert (card.title, card.status) == ("Set num_workers=6 + prefetch_factor=1", "open")


def test_a_gain_that_the_sweep_could_not_measure_is_open() -> None:
    """In the sweep, two workers did not fit: its best configuration has none, and nothing to advise."""
    alone: Config = {"num_workers": 0}
    change: Config = {"num_workers": 2, "normalize": "device"}
    swept = measured([(alone, [100, 101, 102]), (PRESENT, [10, 11, 12])], {"num_workers": [0, 2]})
    trials = pairs(1, [(alone, 100.0), (change, 220.0)])
    found = Verification(present=alone, config=change, tried=(tried("main_process_loading", change, alone),), ended="")
    assert answers(swept)["main_process_loading"].status == "already_ok"
    verified = replace(swept, verification=judged(found, trials, alone), remedy_trials=trials)
    card = answers(verified)["main_process_loading"]
    assert (card.status, card.title) == ("open", "Set num_workers=2 + normalize=device")


@pytest.mark.parametrize("rate", [100.0, 90.0])
def test_a_gain_of_the_sweep_stays_where_a_further_count_gained_nothing(rate: float) -> None:
    """From 1 to 2 workers was a gain of the sweep. Three were tried then, as a fix of the best configuration."""
    present: Config = {"num_workers": 2}
    swept = measured([(present, [160, 161, 162]), ({"num_workers": 1}, [100, 101, 102])], {"num_workers": [1, 2]})
    swept = replace(swept, baseline={"num_workers": 1})
    assert answers(swept)["more_workers"].status == "open"
    trials = pairs(1, [(present, 100.0), ({"num_workers": 3}, rate)])
    more = tried("more_workers", {"num_workers": 3}, present)
    found = judged(Verification(present=present, config=present, tried=(more,), ended=""), trials, present)
    card = answers(replace(swept, verification=found, remedy_trials=trials))["more_workers"]
    assert (card.status, card.change) == ("open", {"num_workers": 2})


def test_what_was_not_tried_stays_advice() -> None:
    trials = pairs(1, [(PRESENT, 100.0), ({**PRESENT, **DECODER}, 130.0)])
    assert told([tried("faster_decoder", DECODER)], trials)["scaled_decode"].basis == "heuristic"


def test_all_accepted_fixes_vs_baseline_come_first() -> None:
    first, both = {**PRESENT, **UINT8}, {**PRESENT, **UINT8, **DECODER}
    trials = [
        *pairs(1, [(PRESENT, 100.0), (first, 130.0), ({**PRESENT, **DECODER}, 120.0)]),
        *pairs(6, [(first, 130.0), (both, 150.0)]),
        *pairs(11, [(BASELINE, 50.0), (both, 150.0)]),
    ]
    steps = [
        tried("uint8_transport", UINT8, accepted=True),
        tried("faster_decoder", DECODER),
        tried("faster_decoder", DECODER, first, accepted=True),
    ]
    found = told(steps, trials, both)
    whole = next(iter(found.values()))
    assert (whole.id, whole.basis) == ("combination", "measured")
    assert whole.title == "Apply num_workers=2 + normalize=device + decoder=torchvision"
    assert whole.change == both
    assert whole.gain is not None
    assert whole.gain.est == pytest.approx(3.0, rel=0.1)
    assert "moves to the training process" in (whole.caveat or ""), "the caveats of its parts are its own"
    assert whole.against == BASELINE
    assert whole.changes_pixels == "changes pixels, PSNR not measured", "one of its parts does"
    assert {trial.split("-")[0] for trial in whole.trials} == {f"v{number}" for number in range(11, 16)}
    decoder = found["faster_decoder"]
    assert decoder.against == PRESENT
    assert "with decoder=torchvision: 120" in decoder.evidence[1], "alone"
    assert decoder.evidence[-1].startswith("On top of normalize=device: ")


def test_one_change_from_the_baseline_has_one_card() -> None:
    changed = {**BASELINE, **DECODER}
    trials = pairs(1, [(BASELINE, 100.0), (changed, 130.0)])
    verification = Verification(
        present=BASELINE,
        config=changed,
        tried=(tried("faster_decoder", DECODER, BASELINE, accepted=True),),
        ended="",
    )
    found = diagnosis(CAUSES["faster_decoder"])
    verification = judged(verification, trials, BASELINE)
    findings = Findings(
        [],
        [],
        None,
        BASELINE,
        {},
        False,
        diagnosis=found,
        verification=verification,
        remedy_trials=trials,
        profile=True,
    )
    assert [answer.id for answer in recommend(findings) if answer.basis == "measured"] == ["faster_decoder"]


@pytest.mark.parametrize(
    ("samples", "ends", "warned"), [(240, 0, True), (240, 3, False), (240_000, 0, False), (None, 0, False)]
)
def test_where_epochs_are_short_the_card_says_what_each_loses_at_its_start(
    samples: int | None, ends: int, warned: bool
) -> None:
    """Trials in which epochs ended include their starts."""
    change: Config = {"num_workers": 4}
    trials = [
        replace(trial, time_to_first_batch_s=0.4, samples_per_epoch=samples, epoch_ends=ends)
        for trial in pairs(1, [(PRESENT, 400.0), ({**PRESENT, **change}, 800.0)])
    ]
    card = told([tried("more_workers", change)], trials, cause="more_workers")["more_workers"]
    assert card.status == "open"
    assert ("Gain excludes startup: 400 ms per epoch (57%)" in (card.caveat or "")) is warned


def test_no_card_of_the_sweep_contradicts_what_was_kept_since() -> None:
    present: Config = {"num_workers": 0}
    kept: Config = {"num_workers": 2}
    swept = measured([({"num_workers": 1}, [60, 61, 62]), (present, [100, 101, 102])], {"num_workers": [0, 1]})
    assert answers(swept)["fewer_workers"].status == "open"

    main = tried("main_process_loading", kept, present, accepted=True)
    trials = pairs(1, [(present, 100.0), (kept, 140.0)])
    since = judged(Verification(present=present, config=kept, tried=(main,), ended=""), trials, present)
    card = answers(replace(swept, verification=since, remedy_trials=trials))["fewer_workers"]
    assert (card.status, card.reason) == ("already_ok", "A fix tried later set num_workers=2")


MIB = 1 << 20


def of_sweep_and_tried() -> dict[str, Recommendation]:
    """The sweep measured two workers, six were tried; each worker takes 200 MiB."""
    present: Config = {"num_workers": 1}
    kept: Config = {"num_workers": 6}
    sizes = (1_200 * MIB, 1_400 * MIB)
    rates: list[tuple[Config, list[float]]] = [(present, [100, 101, 102]), ({"num_workers": 2}, [150, 151, 152])]
    swept = measured(rates, {"num_workers": [1, 2]}, sizes=sizes)
    costs = answers(swept)["more_workers"].costs
    assert costs == ("1 more worker process", "200 MiB more RAM")

    trials = [
        replace(trial, pss_bytes=(1_000 + 200 * int(str(trial.config["num_workers"]))) * MIB)
        for trial in pairs(1, [(present, 100.0), (kept, 190.0)])
    ]
    steps = (tried("more_workers", kept, present, accepted=True),)
    since = judged(Verification(present={"num_workers": 2}, config=kept, tried=steps, ended=""), trials, present)
    return answers(replace(swept, verification=since, remedy_trials=trials))


@pytest.mark.parametrize("id_", ["more_workers", "combination"])
def test_the_costs_of_a_tried_fix_are_those_of_the_value_that_was_tried(id_: str) -> None:
    card = of_sweep_and_tried()[id_]
    assert card.costs == ("5 more worker processes", "1,000 MiB more RAM")


def test_costs_that_hold_for_any_value_stay_with_the_measured_ones() -> None:
    trials = pairs(1, [(PRESENT, 100.0), ({"num_workers": 6}, 130.0)])
    card = told([tried("more_workers", {"num_workers": 6})], trials, cause="more_workers")["more_workers"]
    assert card.costs == ("RAM for each worker process", "4 more worker processes")


def test_what_the_sweep_changed_for_all_that_was_kept_is_told() -> None:
    """Its best configuration decodes with another library, and has larger batches."""
    baseline: Config = {"num_workers": 2, "batch_size": 8, "decoder": "pillow"}
    present: Config = {"num_workers": 2, "batch_size": 64, "decoder": "torchvision"}
    last = {**present, **UINT8}
    trials = [*pairs(1, [(present, 100.0), (last, 130.0)]), *pairs(6, [(baseline, 50.0), (last, 130.0)])]
    found = told([tried("uint8_transport", UINT8, present, accepted=True)], trials, last, baseline=baseline)
    whole = found["combination"]
    assert "A larger batch changes convergence" in (whole.caveat or "")
    assert whole.changes_pixels is not None
