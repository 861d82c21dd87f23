"""How close the recommended combination gets to the hardware limit, starting from torch's default loader.

    uv run python benchmarks/limit.py [--data DIR] [--rounds 7] [--seconds 1.5]
    uv run --group loaders python benchmarks/limit.py --files [--data DIR]

`loaderbench run` finds a combination by itself, on the photographs (generated ones without --data), with the usual
recipe and no consumer. Then the default (`num_workers=0`), each step of that combination and the limit are measured in
interleaved rounds. The limit is JPEG decoding alone: the fastest installed decoder, from memory, with one process per
CPU. Shares are ratios within a round, with their 95% interval. Steps that need a copy of the data (smaller files,
decoded images in memory) decode less than the limit does, and can exceed it.

With `--files`, no run searches for a combination. Instead, it measures fixes that decode the original files in each
epoch, each on top of the previous one, and other loaders that decode only crops, as far as their libraries are
installed.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import random
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from io import BytesIO
from pathlib import Path
from typing import Any

from paired_trials import Trials, trials_of

from loaderbench.cpu_lists import usable_cores
from loaderbench.datasets import nvimagecodec
from loaderbench.datasets.folder_scan import scan_image_folder
from loaderbench.datasets.photos import cached_photos
from loaderbench.loaders import LOADER_BACKENDS
from loaderbench.records import Config, Interval, PlannedTrial, Trial, config_label
from loaderbench.statistics.intervals import rate_interval, ratio_interval

SUITE = """\
name: limit
dataset: {{root: "{root}"}}
loader: {{batch_size: 32, shuffle: true, drop_last: true}}
sweep: {{num_workers: auto}}
consumer: {{kind: none}}
measure: {{seconds: {seconds}, budget: {budget}s}}
"""
BUDGET_S = 420
WANTED = 0.85
CROP_LOADERS = ("dali", "tf_data")
"""Loaders that decode only the crop of a JPEG, with their own operations."""

INSTEAD = "copies instead of the cache"

Rates = dict[str, dict[int, float]]


def main() -> int:
    """Find the combination, measure its steps, and print the table."""
    asked = _arguments()
    root = asked.data or cached_photos(images=512)
    with tempfile.TemporaryDirectory() as folder:
        suite = Path(folder) / "limit.yaml"
        suite.write_text(SUITE.format(root=root.resolve(), seconds=asked.seconds, budget=BUDGET_S))
        steps = _steps_with_files() if asked.files else _steps(_found_by_itself(suite, Path(folder) / "run"))
        decoder, files = _fastest_decoder(root)
        with trials_of(suite) as trials:
            rates, last = _measure(trials, steps, lambda: decoding_alone(decoder, files, asked.seconds), asked.rounds)
    _print_ladder(steps, rates, decoder)
    if asked.files:
        divided = [name for name in steps if name.startswith("+")]
    else:
        divided = [_before_copies(steps), _last_kept(steps)]
        _print_answer(steps, rates)
    for name in divided:
        _print_remainder(name, last)
    return 0


def _found_by_itself(suite: Path, out: Path) -> dict[str, Any]:
    subprocess.run([sys.executable, "-m", "loaderbench", "run", str(suite), "--out", str(out), "-q"], check=True)
    found: dict[str, Any] = json.loads((out / "run.json").read_text())
    return found


def _steps(run: dict[str, Any]) -> dict[str, Config]:
    """The default, the sweep's best, and the configuration after each accepted fix."""
    steps: dict[str, Config] = {"torch's default": run["baseline"]["config"]}
    verification = run["verification"]
    if verification is None:
        sys.exit(f"no remedy was tried: {run['not_measured']['verification']}")
    steps["best of the sweep"] = config = verification["present"]
    for tried in verification["tried"]:
        if tried["accepted"]:
            config = {**config, **tried["change"]}
            steps[f"+ {tried['id']}"] = config
    if config.get("image_cache"):  # an alternative for folders that do not fit into memory
        steps[INSTEAD] = {**config, "image_cache": None, "presize": 256}
    return steps


def _steps_with_files() -> dict[str, Config]:
    """Steps from torch's default onwards, with a worker or thread for each CPU."""
    cpus = usable_cores()
    default: Config = {"batch_size": 32, "num_workers": 0}
    uint8 = {**default, "num_workers": cpus, "normalize": "device", "transform": "imagenet_train_v2"}
    regions = {**uint8, "decoder": nvimagecodec.DECODER, "transform": nvimagecodec.DRAWS_FIRST}
    steps: dict[str, Config] = {
        "torch's default": default,
        "workers": {**default, "num_workers": cpus},
        "+ uint8_transport, transforms_v2_uint8": uint8,
        "+ faster_decoder": {**uint8, "decoder": "simplejpeg"},
        "+ region_decode": regions,
    }
    threads = {"batch_size": 32, "threads": cpus, "normalize": "device"}
    of_threads = {name: value for name, value in regions.items() if name != "num_workers"}
    steps["region_decode, loader: threads"] = {**of_threads, **threads, "loader": "threads"}
    for name in CROP_LOADERS:
        steps[f"loader: {name}"] = {**threads, "loader": name}
    missing = [name for name in CROP_LOADERS if not LOADER_BACKENDS[name].is_installed()]
    if not nvimagecodec.is_installed():
        missing += ["region_decode"]
    return {step: config for step, config in steps.items() if not any(name in step for name in missing)}


def _last_kept(steps: dict[str, Config]) -> str:
    """The step with everything that the run recommends."""
    return [name for name in steps if name != INSTEAD][-1]


def _before_copies(steps: dict[str, Config]) -> str:
    """The last step that decodes the original files."""
    return [name for name, config in steps.items() if not config.get("image_cache") and not config.get("presize")][-1]


def _measure(
    trials: Trials, steps: dict[str, Config], limit: Callable[[], float], rounds: int
) -> tuple[Rates, dict[str, Trial]]:
    """Measure every step and the limit once per round, in shuffled order."""
    order, rates, last = random.Random(0), Rates(), dict[str, Trial]()
    for number in range(1, rounds + 1):
        names = [*steps, "limit"]
        order.shuffle(names)
        for name in names:
            if name == "limit":
                rate = limit()
            else:
                last[name] = trials.run(
                    [PlannedTrial(id=f"l{number}-{len(last)}", role="sweep", config=steps[name], round=number)]
                )[0]
                rate = last[name].samples_per_s or 0.0
            rates.setdefault(name, {})[number] = rate
    return rates, last


def _decoders() -> dict[str, Callable[[bytes], Any]]:
    """Decoders from bytes to complete RGB images."""
    import torch
    from PIL import Image
    from torchvision.io import ImageReadMode, decode_jpeg

    torch.set_num_threads(1)
    found: dict[str, Callable[[bytes], Any]] = {
        "pillow": lambda data: Image.open(BytesIO(data)).convert("RGB"),
        "torchvision": lambda data: decode_jpeg(
            torch.frombuffer(bytearray(data), dtype=torch.uint8), mode=ImageReadMode.RGB
        ),
    }
    try:
        import simplejpeg
    except ImportError:
        return found
    return {**found, "simplejpeg": lambda data: simplejpeg.decode_jpeg(data, colorspace="RGB")}


def _fastest_decoder(root: Path) -> tuple[str, list[bytes]]:
    """Find the decoder with the lowest median CPU time, interleaved over the same files."""
    files = [Path(path).read_bytes() for path, _ in scan_image_folder(root, 240).samples]
    files = [data for data in files if data[:2] == b"\xff\xd8"]
    times: dict[str, list[float]] = {}
    for _ in range(3):
        for name, decode in _decoders().items():
            began_s = time.process_time()
            for data in files[:120]:
                decode(data)
            times.setdefault(name, []).append(time.process_time() - began_s)
    return min(times, key=lambda name: sorted(times[name])[1]), files


def decoding_alone(decoder: str, files: list[bytes], seconds: float) -> float:
    """Images/s of all CPUs together."""
    context = multiprocessing.get_context("fork")
    cores = usable_cores()
    counts, barrier = context.Array("l", cores), context.Barrier(cores)
    took = context.Array("d", cores)

    def decode_on(number: int) -> None:
        decode = _decoders()[decoder]
        mine = files[number::cores] * 2
        for data in mine[:10]:
            decode(data)
        barrier.wait()
        began_s, done = time.perf_counter(), 0
        while time.perf_counter() - began_s < seconds:
            decode(mine[done % len(mine)])
            done += 1
        counts[number], took[number] = done, time.perf_counter() - began_s

    children = [context.Process(target=decode_on, args=(number,)) for number in range(cores)]
    for child in children:
        child.start()
    for child in children:
        child.join()
    return sum(count / time_s for count, time_s in zip(counts, took, strict=True))


def _print_ladder(steps: dict[str, Config], rates: Rates, decoder: str) -> None:
    print("| step | samples/s | of the limit | over the default | what it is |")
    print("| --- | --: | --: | --: | --- |")
    for name in [*steps, "limit"]:
        share, gain = ratio_interval(rates[name], rates["limit"]), ratio_interval(rates[name], rates["torch's default"])
        rate = rate_interval(list(rates[name].values()))
        what = config_label(steps[name]) if name in steps else f"{decoder} alone, {usable_cores()} processes"
        print(f"| {name} | {rate.est:,.0f} | {_percent(share)} | {_times(gain)} | {what} |")


def _print_answer(steps: dict[str, Config], rates: Rates) -> None:
    print(f"\ntarget: {WANTED:.0%} of the limit; reached by the recommended combination:")
    for what, name in (("all of it", _last_kept(steps)), ("what decodes the files as they are", _before_copies(steps))):
        print(f"- {what}: {_percent(ratio_interval(rates[name], rates['limit']))} ({name})")


def _print_remainder(name: str, last: dict[str, Trial]) -> None:
    """Print the time of a sample's stages in a step."""
    trial = last[name]
    print(f"\nWhere a sample's CPU time goes, {name}:\n\n| stage | CPU ms | wall ms |\n| --- | --: | --: |")
    for stage, cost in (trial.stages or {}).items():
        print(f"| {stage} | {_ms(cost.cpu_s)} | {_ms(cost.wall_s)} |")


def _ms(time_s: float | None) -> str:
    return "-" if time_s is None else f"{time_s * 1e3:.3f}"


def _percent(ratio: Interval | None) -> str:
    if ratio is None or ratio.lo is None or ratio.hi is None:
        return "-"
    return f"{ratio.est:.0%} ({ratio.lo:.0%} to {ratio.hi:.0%})"


def _times(ratio: Interval | None) -> str:
    if ratio is None or ratio.lo is None or ratio.hi is None:
        return "-"
    return f"x{ratio.est:.2f} ({ratio.lo:.2f} to {ratio.hi:.2f})"


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, help="a folder of photographs")
    parser.add_argument("--files", action="store_true", help="measure only steps that decode the original files")
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--seconds", type=float, default=1.5)
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
