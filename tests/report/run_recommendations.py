"""Recommendations of each standing and basis, for the runs of `run_factory`."""

from loaderbench.records import Config, Gain, Recommendation

NO_ACCELERATOR = "no accelerator: torch sees no device"


def recommendations(trials: tuple[str, ...], best: Config) -> tuple[Recommendation, ...]:
    return (
        Recommendation(
            id="more_workers",
            title="Use two workers and a batch size of 128",
            change=best,
            basis="measured",
            gain=Gain("samples_per_s", 3.9, 3.7, 4.1),
            status="open",
            costs=("0.4 GiB more host memory (PSS)", "First batch after 0.6 s instead of 0.1 s"),
            evidence=("212 samples/s unchanged, 828 samples/s changed, in three paired rounds.",),
            trials=trials,
            caveat="A larger batch size changes the training: check the learning rate.",
            snippet="DataLoader(\n    dataset,\n    batch_size=128,\n    num_workers=2,\n)",
            snippet_yaml="loader:\n  batch_size: 128\n  num_workers: 2",
        ),
        Recommendation(
            id="faster_decoder",
            title="Decode with torchvision.io on tensors",
            change={"decoder": "torchvision"},
            basis="predicted",
            gain=Gain("samples_per_s", 1.35, 1.28, 1.41),
            status="open",
            evidence=("Decode is 81% of a sample's CPU time.",),
            caveat="Pixels differ by rounding.",
            snippet="decode_jpeg(read_file(path))",
        ),
        Recommendation(
            id="deeper_prefetch",
            title="Prefetch four batches per worker",
            change={"prefetch_factor": 4},
            basis="heuristic",
            gain=None,
            status="open",
        ),
        Recommendation(
            id="persistent_workers",
            title="Keep workers between epochs",
            change={},
            basis=None,
            gain=None,
            status="already_ok",
            reason="the first batch takes 2% of an epoch",
        ),
        Recommendation(
            id="pin_memory",
            title="Pin memory",
            change={},
            basis=None,
            gain=None,
            status="not_checked",
            reason=NO_ACCELERATOR,
        ),
    )
