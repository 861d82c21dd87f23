"""Decoding takes the CPUs, and there are faster decoders of the same pixels.

Fires where the CPUs are full and decoding takes a part of them that counts, with Pillow decoding. Tried as
the fastest decoder that is installed: simplejpeg, else torchvision's. Values differ by a step or two of 255.
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
    title="Decode JPEGs without Pillow, to tensors",
    applies=lambda found: found.cpu_goes_to("decode") and found.option("decoder") in (None, "pillow"),
    change=_change,
    relieves={"decode": 0.7},
    code="""from torchvision.io import ImageReadMode, decode_image, read_file

def decode(path):
    return decode_image(read_file(path), mode=ImageReadMode.RGB)  # as ImageFolder(root, transform, loader=decode)
""",
    caveat="transforms then get uint8 tensors, which torchvision's own take",
)
