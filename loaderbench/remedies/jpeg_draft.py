"""Large JPEGs are decoded whole for small crops: libjpeg can scale while it decodes."""

from loaderbench.remedies.by_cause import CauseRemedy
from loaderbench.remedies.sizes import large_images

REMEDY = CauseRemedy(
    id="jpeg_draft",
    title="Let libjpeg scale while it decodes: Image.draft",
    applies=lambda found: (
        found.named(stages="decode", limits="cpu workers memory oversubscription") and large_images(found.facts)
    ),
    code="""from PIL import Image

def loader(path):
    image = Image.open(path)
    image.draft("RGB", (512, 512))  # at least twice the size that is needed
    return image.convert("RGB")
""",
    caveat="it changes pixels a little",
)
