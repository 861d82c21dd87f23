"""Training decodes whole images, then shrinks a random crop of them.

Triggers when CPUs are saturated, an ImageNet training transform runs, and decoding is the bottleneck or at least 15%
of the CPU time.

What it does: chooses the crop from the image's header. Crops that would shrink by two or more are decoded at 1/2, 1/4
or 1/8 scale. Larger images gain more.

How to confirm: measure again; decode time per sample falls, and the report lists the PSNR.
"""

from loaderbench.remedies.by_cause import CauseRemedy, option

REMEDY = CauseRemedy(
    id="scaled_decode",
    title="Choose the crop first; decode at reduced scale",
    applies=lambda found: (
        found.cpu_goes_to("decode") and found.option("transform") in ("imagenet_train", "imagenet_train_v2")
    ),
    change=option(decoder="pillow_lazy", transform="imagenet_train_scaled"),
    relieves={"decode": 0.75, "transform": 0.8},
    caveat="JPEG only; other formats are decoded as before",
    changes_pixels=True,
)
