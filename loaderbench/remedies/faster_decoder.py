"""Decoding takes much of the CPU time, and faster decoders produce nearly the same pixels.

Triggers when CPUs are saturated, Pillow decodes, and decoding is the bottleneck or at least 15% of the CPU time.

What it does: decodes with the fastest installed decoder: simplejpeg, otherwise torchvision. Values differ by one or
two steps of 255.

How to confirm: measure again; decode time per sample falls, and the report lists the PSNR.
"""

from __future__ import annotations

from importlib.util import find_spec

from loaderbench.records import Config
from loaderbench.remedies.by_cause import CauseRemedy
from loaderbench.remedies.findings import Diagnosis


def _change(found: Diagnosis) -> Config:
    if not found.has_options("decoder"):
        return {}
    return {"decoder": "simplejpeg" if find_spec("simplejpeg") else "torchvision"}


REMEDY = CauseRemedy(
    id="faster_decoder",
    title="Decode JPEGs with {decoder} instead of Pillow",
    title_in_code="Decode JPEGs with torchvision, if you use Pillow now",
    evident="pillow",
    values={"decoder": "torchvision"},
    applies=lambda found: (
        found.cpu_goes_to("decode") and found.option("decoder") in (None, "pillow") and not found.has_seen("opencv")
    ),
    change=_change,
    relieves={"decode": 0.7},
    code="""from torchvision.io import ImageReadMode, decode_image, read_file

def decode(path):
    return decode_image(read_file(path), mode=ImageReadMode.RGB)  # use: ImageFolder(root, transform, loader=decode)
""",
    caveat="Transforms then get uint8 tensors instead of PIL images",
    changes_pixels=True,
)
