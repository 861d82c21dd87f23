"""Training decodes whole JPEGs, then keeps a random crop of each.

Triggers when CPUs are saturated, an ImageNet training transform runs, and decoding is the bottleneck or at least 15% of
the CPU time. It is measured only if nvImageCodec is installed.

What it does: chooses the crop from the image's header. nvImageCodec then decodes only that region, on the CPU, in
`DataLoader` workers. It needs no GPU. Decoded pixels are the same, but resizing tensors rounds differently.

How to confirm: measure again; decode time per sample falls.
"""

from __future__ import annotations

from loaderbench.datasets.nvimagecodec import DECODER, DRAWS_FIRST, INSTALL, is_installed
from loaderbench.remedies.by_cause import CauseRemedy, option
from loaderbench.remedies.gpu_decode import decodes_on_cpus

NOT_INSTALLED = (
    f"Not measured: nvImageCodec is not installed. Run `{INSTALL}`, then "
    f"`loaderbench run SUITE -P decoder=pillow,{DECODER} -P transform={DRAWS_FIRST}`"
)


REMEDY = CauseRemedy(
    id="region_decode",
    title="Decode only the region of each crop, with nvImageCodec",
    applies=lambda found: decodes_on_cpus(found) and str(found.option("transform")).startswith("imagenet_train"),
    change=option(decoder=DECODER, transform=DRAWS_FIRST),
    untried_for=lambda _: "" if is_installed() else NOT_INSTALLED,
    relieves={"decode": 0.65, "transform": 0.6},
    costs=("One more package, nvImageCodec",),
    caveat="JPEG only; Pillow decodes other formats. Corrupt data below the crop goes undetected",
    changes_pixels=True,
)
