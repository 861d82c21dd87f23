"""Large JPEGs are decoded at full resolution although training uses small crops.

Triggers when decoding is the bottleneck, Pillow decodes, and files have 1 MB or more. Small images have nothing to
scale.

What it does: lets libjpeg scale while it decodes, with Pillow's `Image.draft`, to no less than 256 pixels a side.

How to confirm: measure again; decode time per sample falls, and the report lists the PSNR.
"""

from loaderbench.remedies.by_cause import CauseRemedy, option
from loaderbench.remedies.findings import large_images

REMEDY = CauseRemedy(
    id="jpeg_draft",
    title="Decode at reduced scale with Image.draft",
    title_in_code="Decode at reduced scale, if you decode with Pillow",
    evident="pillow",
    effort=2,
    applies=lambda found: (
        found.named(stages={"decode"}, limits={"cpu", "workers", "memory", "oversubscription", "neighbors"})
        and large_images(found.facts)
        and found.option("decoder") in (None, "pillow")
        and not found.has_seen("opencv")
    ),
    change=option(decoder="pillow_draft"),
    relieves={"decode": 0.25},
    code="""from PIL import Image

def decode(path):
    image = Image.open(path)
    image.draft("RGB", (256, 256))  # no side gets smaller than this; crops of 224 need no more
    return image.convert("RGB")
""",
    caveat="Small crops are cut from a smaller image",
    changes_pixels=True,
)
