"""What is concluded from the recorded runs in another way today, on purpose. For `test_recorded_runs.py`."""

from __future__ import annotations

CORRECTED = {
    "example_two_cores": (": figures", ".trials: ", *(f".trials.{number}: " for number in range(5, 10))),
    "synthetic_quiet_transport_tiny_w2": (".snippet: ",),
    "synthetic_quiet_run_decode_w0": (".snippet: ",),
    **dict.fromkeys(
        ("profile_transfer_marked", "scenario_transfer_copies", "synthetic_transfer_profile"), (".snippet: ",)
    ),
    **dict.fromkeys(("profile_steps_marked", "scenario_startup_init_w2"), (".reason: ",)),
}
"""What differs in the first recommendation, which was wrong when recorded. Of the example, rates and starts of epochs
were means that included rounds without the baseline, which its ratio is taken over. Of the other, the program gave
`prefetch_factor` without workers, for which torch raises an error. For a custom transform, it took a class or a
factory for the transform. Of the copy, it copied between two steps instead of during one. Of persistent workers, the
reason was that no epoch begins in a trial; now some do."""

CORRECTED_CODE = {
    "ImageFolder(root, transform=": "ImageFolder(root, allow_empty=True, transform=",
    "Encoded(root)": "Encoded(root, allow_empty=True)",
    "collate_fn=collate_and_process, num_workers=2)": "collate_fn=collate_and_process, num_workers=...)",
}
"""Lines of a program that were wrong when recorded: a class folder may be empty, and not everyone who loads in two
workers or more wants two."""

OTHER_PROGRAMS = (
    *("cold_cache", "pack_small_files", "jpeg_draft", "presize_offline", "faster_decoder"),
    *("cpu_quota", "slow_samples", "mixed_precision", "memory_cache", "page_faults"),
)
"""Fixes whose program is another one now: it copies each folder apart and completely, shuffles the samples of shards,
and decodes to no less than the 256 pixels that a trial decodes to. Resized copies have a folder of their own. Pillow
decodes what simplejpeg cannot. For a quota, it widened the affinity. The slowest samples come from the run's file.
Mixed precision depends on the data. Cached images keep their orientation. An older glibc takes a lower threshold."""

DECIDED_AGAIN = {
    "run_shared_memory_full": ("recommendations",),
    **dict.fromkeys(("synthetic_gpus_ladder", "synthetic_gpus_ties"), ("verdict", "recommendations")),
    "profile_generator_untraced": ("verdict", "recommendations"),
    "synthetic_traced_profile": ("recommendations",),
    **dict.fromkeys(("run_ladder_emulated", "run_resumed"), ("recommendations",)),
}
"""What is concluded in another way on purpose. Threads of a worker were limited to one, though it had no other. Of 16
CPUs, 15.2 are in use: they are saturated now, and cheaper work is advised instead of more workers. A main process that
was blocked 94% of the time was called busy. Epoch starts that take a tenth of the time have a fix of their own.
Fixes for the bottleneck come before those for other stages."""


REWORDED = {
    "scenario_threads_blur_two_each_w2": ("verdict: figures that are gone: 4",),
    "profile_steps_marked": (
        "verdict: figures that are gone: 47, 54",
        "recommendations.0: figures that are gone: 47",
    ),
    "scenario_startup_init_w2": (
        "verdict: figures that are gone: 73, 75",
        "recommendations.0: figures that are gone: 75",
    ),
    "run_verified": ("recommendations.0: figures that are gone: 252",),
}
"""Lines that say which figures of a sentence are gone on purpose. A mean of 4.1 threads was rounded to 4. A startup
that is the cause was said a second time, as a share of an epoch; that is still among the costs of an epoch. The time
before a first batch included the training step of a batch. The share of startup left out the batches of the warm-up."""


EXCLUDED = (
    "scenario_quota_group_hash_w1",
    "scenario_run_straggler_w4",
    "scenario_straggler_sleep_w4",
    "scenario_transport_arrays_w2",
)
"""Whose verdict listed causes against itself that its own facts exclude: too many threads while most CPUs are idle, and
blocked workers of a loop that waits for no worker. The verdict is the same."""
