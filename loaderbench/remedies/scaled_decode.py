"""A random crop is shrunk after its image was decoded whole: draw it first, and let libjpeg decode less.

Fires where the CPUs are full, decoding takes a part of them that counts and the recipe is the usual one.
The crop is drawn from the header's size; where it would be shrunk by two or more, the JPEG is decoded at a half, a
quarter or an eighth. What it gives grows with the size of the images.
"""

from loaderbench.remedies.by_cause import CauseRemedy, option

REMEDY = CauseRemedy(
    id="scaled_decode",
    title="Draw the crop before decoding, and decode no more pixels than it needs",
    applies=lambda found: (
        found.cpu_goes_to("decode") and found.option("transform") in ("imagenet_train", "imagenet_train_v2")
    ),
    change=option(decoder="pillow_lazy", transform="imagenet_train_scaled"),
    relieves={"decode": 0.75, "transform": 0.8},
    caveat="JPEG only; other formats are decoded as before",
)
