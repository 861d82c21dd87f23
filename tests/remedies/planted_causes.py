"""For each remedy of a cause, a cause for which it fires, and what makes it silent."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from loaderbench.diagnosis.facts import Facts
from loaderbench.records import CodeAround, LoopLine, Recommendation, Verdict, WaitParts, WorkerStates
from loaderbench.remedies import Diagnosis, Findings, recommend

FACTS = Facts(
    workers=2,
    cpus=4,
    samples_per_s=400,
    batch_samples=32,
    cpu_s={"decode": 4e-3},
    wall_s={"decode": 4e-3},
    loads=WorkerStates(on_cpu_share=0.9, run_queue_share=0.0, blocked_share=0.1, runnable_threads=2.0),
    own_cpus=2.0,
)
CONFIG = {"batch_size": 32, "num_workers": 2, "persistent_workers": False}
LARGE = replace(FACTS, bytes_per_sample=5e6)
TINY = replace(FACTS, wall_s={"sample": 1e-6})
THREADS = replace(
    FACTS, loads=WorkerStates(on_cpu_share=0.5, run_queue_share=0.5, blocked_share=0.0, runnable_threads=16.0)
)

FOLDER = {
    "decoder": "pillow",
    "transform": "imagenet_train",
    "normalize": "worker",
    "presize": None,
    "image_cache": None,
}
TRANSFORMS = replace(FACTS, cpu_s={"decode": 2e-3, "transform": 2e-3}, wall_s={"decode": 2e-3, "transform": 2e-3})
FITS = replace(FACTS, bytes_per_sample=1e5)
NARROW = replace(FACTS, loads=WorkerStates(on_cpu_share=0.9, run_queue_share=0.5, blocked_share=0.0, allowed_cpus=1))

CONVERTED = replace(
    FACTS,
    next_s=0.2,
    parts=WaitParts(batches=9, not_begun_s=0.0, making_s=0.0, order_s=0.0, transport_s=0.0, main_process_s=0.05),
    around=CodeAround(place="prepared (train.py:8)", wall_s=0.05),
)

IN_THREADS = replace(
    FACTS, loads=WorkerStates(on_cpu_share=0.5, run_queue_share=0.0, blocked_share=0.5, are_threads=True)
)

PINNING = replace(FACTS, main=replace(NARROW.loads, pinning_share=0.95))  # type: ignore[type-var]

WAITING = replace(FACTS, loads=WorkerStates(on_cpu_share=0.05, run_queue_share=0.0, blocked_share=0.95))
SWAPPED = replace(
    FACTS,
    loads=WorkerStates(
        on_cpu_share=0.1,
        run_queue_share=0.0,
        blocked_share=0.9,
        blocked_on={"page_fault": 0.9, "running": 0.1},
        major_faults_per_s=900.0,
        swapped_bytes=1 << 30,
    ),
    idle_share=0.0,
    swap_faults_per_s=1_000.0,
    swapped_in_bytes_per_s=3e7,
)
FED = replace(WAITING, fed_by="Queue.get", idle_share=0.0)
KEEPS_THE_GIL = replace(WAITING, busy_thread="log (train.py:8)", idle_share=0.9, next_s=0.1, next_cpu_s=0.01)
SLOW_SAMPLER = replace(FACTS, startup_s=0.5, startup_share=0.6, sampler_start_s=0.4)
LINE = LoopLine(place="train.py:44", text="", share=0.9, looks=50)
SLOW_LOOP = replace(FACTS, wait_share=0.1, rest_share=0.6, step_line=LINE)
SLOW_BETWEEN = replace(FACTS, wait_share=0.1, between_share=0.3, between_s=0.2, between_line=LINE)


@dataclass(frozen=True)
class Case:
    """A cause for which a remedy fires, and what is different where it has to be silent."""

    stage: str
    limit: str | None
    facts: Facts = FACTS
    bound: str = "input"
    options: dict[str, object] | None = None
    traits: dict[str, str] = field(default_factory=dict)
    accelerator: bool = False
    rank: int | None = None
    silent: dict[str, object] = field(default_factory=dict)  # fields of a diagnosis that make it silent


CAUSES: dict[str, Case] = {
    "main_process_loading": Case("decode", "workers", replace(FACTS, workers=0)),
    "more_workers": Case("decode", "workers"),
    "fewer_workers": Case("decode", "oversubscription", replace(FACTS, workers=8)),
    "library_threads": Case("transform", "oversubscription", THREADS),
    "cpu_quota": Case("decode", "quota", NARROW),
    "workers_beyond_cores": Case("sample", "storage_latency"),
    "cold_cache": Case("read", "storage_bandwidth"),
    "pack_small_files": Case("read", "storage_latency"),
    "process_loader": Case("sample", "lock", IN_THREADS, silent={"facts": FACTS}),
    "feeding_process": Case("sample", "lock", FED, silent={"facts": FACTS}),
    "release_lock": Case("sample", "lock", silent={"facts": IN_THREADS}),
    "move_into_workers": Case("main_process", "lock"),
    "persistent_workers": Case("startup", "startup", silent={"config": {**CONFIG, "persistent_workers": True}}),
    "chunked_sampler": Case("startup", "startup", SLOW_SAMPLER, silent={"facts": FACTS}),
    "larger_epochs": Case("startup", "startup", replace(FACTS, workers=0)),
    "out_of_order": Case("stragglers", "order", silent={"config": {**CONFIG, "in_order": False}}),
    "deeper_prefetch": Case("stragglers", "order", silent={"config": {**CONFIG, "prefetch_factor": 8}}),
    "slow_samples": Case("stragglers", "storage_latency"),
    "even_shards": Case("decode", "imbalance"),
    "no_workers_for_tiny_samples": Case("transport", "lock", TINY),
    "faster_loop": Case("transport", "cpu", SLOW_LOOP, silent={"facts": replace(SLOW_LOOP, step_line=None)}),
    "between_epochs": Case("decode", "cpu", SLOW_BETWEEN, silent={"facts": replace(SLOW_BETWEEN, wait_share=0.5)}),
    "background_thread": Case(
        "transport", "lock", KEEPS_THE_GIL, silent={"facts": replace(KEEPS_THE_GIL, busy_thread="")}
    ),
    "uint8_transport": Case(
        "transport", "memory", options=FOLDER, silent={"options": {**FOLDER, "normalize": "device"}}
    ),
    "thread_loader": Case("transport", "memory", silent={"traits": {"stream": "Stream"}}),
    "page_faults": Case("sample", "memory", silent={"facts": SWAPPED}),
    "mapped_dataset": Case("sample", "memory", SWAPPED, silent={"facts": FACTS}),
    "uncached_images": Case(
        "sample", "memory", SWAPPED, options={**FOLDER, "image_cache": "shared_memory"}, silent={"options": FOLDER}
    ),
    "shallower_prefetch": Case("sample", "memory", SWAPPED, silent={"config": {**CONFIG, "prefetch_factor": 1}}),
    "jpeg_draft": Case("decode", "cpu", LARGE, silent={"facts": FACTS}),
    "faster_decoder": Case("decode", "cpu", options=FOLDER, silent={"options": {**FOLDER, "decoder": "torchvision"}}),
    "scaled_decode": Case("decode", "cpu", options=FOLDER, silent={"options": {**FOLDER, "transform": "to_tensor"}}),
    "region_decode": Case("decode", "cpu", options=FOLDER, silent={"options": {**FOLDER, "transform": "mine:crop"}}),
    "transforms_v2_uint8": Case(
        "decode", "cpu", TRANSFORMS, options=FOLDER, silent={"options": {**FOLDER, "transform": "imagenet_train_v2"}}
    ),
    "presize_offline": Case("decode", "cpu", options=FOLDER, silent={"options": {**FOLDER, "presize": 256}}),
    "memory_cache": Case("decode", "cpu", FITS, options=FOLDER, silent={"files": 10_000_000}),
    "gpu_decode": Case("decode", "cpu", accelerator=True, silent={"accelerator": False}),
    "gpu_decode_dali": Case("decode", "cpu", options=FOLDER, accelerator=True, silent={"accelerator": False}),
    "dali_loader": Case("decode", "cpu", options=FOLDER, silent={"options": {**FOLDER, "transform": "mine:crop"}}),
    "cheaper_collate": Case("collate", "cpu"),
    "cheaper_read": Case("read", "cpu"),
    "cheaper_sample": Case("sample", "cpu"),
    "pin_memory": Case("", None, bound="transfer", accelerator=True, silent={"config": {**CONFIG, "pin_memory": True}}),
    "unpin_memory": Case("transport", "lock", PINNING, silent={"facts": FACTS}),
    "fewer_copies": Case("", None, bound="transfer"),
    "mixed_precision": Case("", "none", bound="compute", accelerator=True, silent={"accelerator": False}),
    "duplicate_augmentation": Case("decode", "workers", traits={"random_state": "rng"}, silent={"traits": {}}),
    "copy_on_read": Case("decode", "workers", traits={"object_list": "samples"}, silent={"traits": {}}),
    "share_workers": Case(
        "read", "storage_latency", replace(FACTS, ranks=2), rank=1, silent={"traits": {"stream": "mine:Shards"}}
    ),
    "sharded_list": Case(
        "decode", "workers", replace(FACTS, ranks=2), traits={"object_list": "samples"}, silent={"facts": FACTS}
    ),
}


def diagnosis(case: Case, **config: object) -> Diagnosis:
    verdict = Verdict(
        bound=case.bound,  # type: ignore[arg-type]
        stage=case.stage or None,
        limit=case.limit,
        headline="",
        evidence=("why", "waits", "delivers"),
        confidence="medium",
        rank=case.rank,
    )
    known = {**CONFIG, "num_workers": case.facts.workers, "pin_memory": case.facts is PINNING, **config}
    return Diagnosis(
        verdict,
        case.facts,
        known,  # type: ignore[arg-type]
        accelerator=case.accelerator,
        options=case.options,
        files=1_000,
        shared_memory_bytes=8 << 30,
        profile=case.bound == "compute",
        traits=case.traits,
    )


def told(found: Diagnosis) -> list[Recommendation]:
    return list(recommend(Findings([], [], None, found.config, {}, False, diagnosis=found, profile=True)))


def advice(case: Case, **config: object) -> list[Recommendation]:
    return told(diagnosis(case, **config))
