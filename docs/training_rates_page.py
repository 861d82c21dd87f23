"""`docs/reference/training-rates.md`: generated from the table of training rates, with every rate in its text.

uv run python docs/training_rates_page.py, or make pages
"""

from __future__ import annotations

from pathlib import Path

from loaderbench.consumers.demand import DEFAULT_DEMAND
from loaderbench.consumers.training_rates import PRECISIONS, RATES, NoRateError, TrainingRate, find_rate

PAGE = "reference/training-rates.md"
_H100_LOG = (
    "https://github.com/mlcommons/training_results_v3.0/blob/9f08e30c/"
    "Dell/results/XE9680x8H100-SXM-80GB/resnet/result_0.txt"
)
_OFTEN_ASKED = ("T4", "L4", "A10", "A10G", "L40S", "A100", "H100")  # GPUs of cloud machines


def _without_a_rate() -> list[str]:
    missing = []
    for gpu in _OFTEN_ASKED:
        try:
            find_rate(gpu)
        except NoRateError:
            missing.append(gpu)
    return missing


def _no_rate() -> str:
    """Which of the GPUs that people ask for are not in the table."""
    missing = _without_a_rate()
    names = " and ".join(part for part in (", ".join(missing[:-1]), *missing[-1:]) if part)
    how = "[One GPU](../how-to/one-gpu.md#measure-without-the-gpu) shows how to measure it"
    return f"No published training rate was found for {names}. Set `demand` for these. {how}." if missing else ""


def _samples_per_s(*asked: str) -> str:
    return f"{find_rate(*asked).samples_per_s:,.0f}"


_HEAD = f"""# Training rates

`consumer.accelerator` sets the target of an emulated GPU to a published training rate. The target is the samples/s that
your training could consume if loading took no time.

```yaml
consumer:
  accelerator: a100      # ResNet-50 in mixed precision: {_samples_per_s("a100")} samples/s
  model: efficientnet_b4 # with this line: {_samples_per_s("a100", "efficientnet_b4")} samples/s
  precision: tf32        # with this line too: {_samples_per_s("a100", "efficientnet_b4", "tf32")} samples/s
```

- Rates are **per GPU**. With one process per GPU, each process has to load this many samples/s.
- `model` is `resnet50` by default. `precision` is the first of mixed, TF32 and FP32 that has a rate.
- Names ignore case, spaces, dashes and underscores, and the words NVIDIA, GeForce, Tesla and Quadro.
  `RTX-4090`, `rtx4090` and `NVIDIA GeForce RTX 4090` are one GPU.
- `demand: 1200` sets your own number instead. The two cannot be combined.
- Without either, the target is {DEFAULT_DEMAND:,.0f} samples/s, and reports call it the default.
- `kind: auto` emulates the named GPU even on a machine with a GPU. Remove `accelerator` to train on the real one.

Do not compare rates from different sources: software, memory layout and batch size differ. Tuned software is faster.
On eight H100, an [MLPerf Training 3.0 log]({_H100_LOG})
shows 56,000 images/s, or 7,000 per GPU. Lambda's PyTorch run reaches {_samples_per_s("h100")}. Where it matters,
measure your own step.

{_no_rate()}

To add a rate, add a row to `loaderbench/consumers/training_rates.csv`, and its source to `training_rates.py`.
Then run `make pages`.
"""


def page() -> str:
    """The whole page: a table for each model, in the order of the rates."""
    models = list(dict.fromkeys(rate.model for rate in RATES))
    models.sort(key=lambda model: model != "ResNet-50")
    return "\n".join([_HEAD, *(_table(model) for model in models)])


def _table(model: str) -> str:
    head = [
        f"## {model}",
        "",
        "| GPU | precision | samples/s per GPU | measured with | source |",
        "| --- | --- | ---: | --- | --- |",
    ]
    order = [*PRECISIONS]
    rates = sorted(
        (rate for rate in RATES if rate.model == model), key=lambda rate: (rate.gpu, order.index(rate.precision))
    )
    return "\n".join([*head, *map(_row, rates)]) + "\n"


def _row(rate: TrainingRate) -> str:
    source = f"[{rate.source.title}]({rate.source.address})"
    how = f"{rate.source.software}; {rate.measured}"
    return f"| {rate.gpu} | {PRECISIONS[rate.precision]} | {rate.samples_per_s:,.0f} | {how} | {source} |"


if __name__ == "__main__":
    (Path(__file__).parent / PAGE).write_text(page(), encoding="utf-8")
