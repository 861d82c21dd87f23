"""Images are far larger than what is used of them: write smaller copies once.

Fires where the CPUs are full of decoding, or reading is the limit. Tried on copies whose shorter side has 256
pixels, as they are usual for crops of 224. It changes pixels, and takes disk.
"""

from loaderbench.remedies.by_cause import CauseRemedy, option

REMEDY = CauseRemedy(
    id="presize_offline",
    title="Train from copies whose shorter side has 256 pixels, written once",
    effort=3,
    applies=lambda found: (
        (found.cpu_goes_to("decode") or found.named(stages={"decode", "read"}, limits={"storage_bandwidth", "memory"}))
        and str(found.option("transform")).startswith("imagenet")
        and not found.option("presize")
    ),
    change=option(presize=256),
    relieves={"decode": 0.5, "read": 0.5},
    costs=("disk for the copies", "one pass over all images"),
    caveat="it changes pixels: small crops are cut from a smaller image, and the copies are compressed again",
)
