"""Large JPEGs are decoded whole for small crops: libjpeg can scale while it decodes.

Fires where decoding is limited by CPUs, workers or memory, and a file has a megabyte or more: at 500 pixels there is
nothing to scale. Tried as Pillow's `draft`, to no less than 256 pixels a side. It changes pixels.
"""

from loaderbench.remedies.by_cause import CauseRemedy, option
from loaderbench.remedies.findings import large_images

REMEDY = CauseRemedy(
    id="jpeg_draft",
    title="Let libjpeg scale while it decodes: Image.draft",
    effort=2,
    applies=lambda found: (
        found.named(stages={"decode"}, limits={"cpu", "workers", "memory", "oversubscription"})
        and large_images(found.facts)
        and found.option("decoder") in (None, "pillow")
    ),
    change=option(decoder="pillow_draft"),
    relieves={"decode": 0.25},
    code="""from PIL import Image

def decode(path):
    image = Image.open(path)
    image.draft("RGB", (512, 512))  # at least twice the size that is needed
    return image.convert("RGB")
""",
    caveat="it changes pixels: small crops are cut from a smaller image",
)
