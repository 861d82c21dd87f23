"""Images are far larger than the crops that training uses.

Triggers when decoding saturates the CPUs, or storage bandwidth or page faults limit reading and decoding. It needs an
ImageNet transform.

What it does: writes a smaller copy of every image once, with a short side of 256 pixels, for crops of 224.

How to confirm: measure again; read and decode time per sample fall, and the report lists the PSNR.
"""

from loaderbench.remedies.by_cause import CauseRemedy, option

OTHER_STORAGE = "Not measured: it needs the copies on the same storage"
SIDE = 256  # pixels of the short side, as is usual for crops of 224

REMEDY = CauseRemedy(
    id="presize_offline",
    title="Pre-resize images to {presize} px (short side)",
    values={"presize": SIDE},
    effort=3,
    applies=lambda found: (
        (found.cpu_goes_to("decode") or found.named(stages={"decode", "read"}, limits={"storage_bandwidth", "memory"}))
        and str(found.option("transform")).startswith("imagenet")
        and not found.option("presize")
        and not found.option("storage")
        and found.option("format") in (None, "files")
    ),
    change=option(presize=SIDE),
    untried_for=lambda found: OTHER_STORAGE if found.named(limits={"storage_bandwidth"}) else "",
    relieves={"decode": 0.5, "read": 0.5},
    costs=("Disk for the copies", "One pass over all images"),
    caveat="Small crops are cut from a smaller image, and the copies are recompressed",
    changes_pixels=True,
)
