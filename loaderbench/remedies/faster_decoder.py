"""Decoding is the dearest stage, and there are faster decoders of the same pixels."""

from loaderbench.remedies.by_cause import CauseRemedy

REMEDY = CauseRemedy(
    id="faster_decoder",
    title="Decode with torchvision.io.decode_jpeg, and transform tensors",
    applies=lambda found: found.named(stages="decode", limits="cpu"),
    code="""from torchvision.io import ImageReadMode, decode_jpeg, read_file

def loader(path):
    return decode_jpeg(read_file(path), mode=ImageReadMode.RGB)
""",
    caveat="transforms then get uint8 tensors: use torchvision.transforms.v2",
)
