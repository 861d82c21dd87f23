"""CPUs are full of decoding, and the accelerator has room: let it decode.

Fires where the CPUs are full, decoding takes a part of them that counts, and there is a device.
"""

from loaderbench.remedies.by_cause import CauseRemedy

REMEDY = CauseRemedy(
    id="gpu_decode",
    title="Decode on the device: torchvision.io.decode_jpeg(..., device='cuda')",
    applies=lambda found: found.accelerator and found.cpu_goes_to("decode"),
    untried="the collating and the step of the loop change with it",
    code="""from torchvision.io import decode_jpeg, read_file

def collate(samples):  # the dataset gives (path, label): files are read in workers, and decoded in the loop
    return [read_file(path) for path, _ in samples], torch.tensor([label for _, label in samples])

for files, labels in loader:
    images = decode_jpeg(files, device="cuda")  # a list of tensors, to be cropped and stacked on the device
""",
    costs=("memory and time of the device",),
)
