"""Decoding saturates the CPUs, and NVIDIA DALI can decode JPEGs on the GPU.

Triggers when CPUs are saturated, and decoding is the bottleneck or at least 15% of the CPU time. It needs an NVIDIA GPU
and a folder of images, and is measured where DALI is installed.

What it does: reads files in workers and decodes them by DALI on the GPU, as part of the training step. DALI
interpolates colors as CPU decoders do, which torchvision does not on a GPU.

How to confirm: measure again on the GPU; throughput rises although the step takes longer.
"""

from __future__ import annotations

from loaderbench.datasets.dali import INSTALL, is_installed
from loaderbench.remedies.by_cause import CauseRemedy
from loaderbench.remedies.findings import Diagnosis
from loaderbench.remedies.gpu_decode import decode_by, may_decode_on_gpu

NOT_INSTALLED = (
    f"Not measured: DALI is not installed. Run `{INSTALL}`, then `loaderbench run SUITE -P decoder=pillow,dali`"
)


def _applies(found: Diagnosis) -> bool:
    on_nvidia = found.accelerator and found.gpu_kind == "cuda"
    return on_nvidia and may_decode_on_gpu(found) and bool(decode_by("dali")(found))


REMEDY = CauseRemedy(
    id="gpu_decode_dali",
    title="Decode JPEGs on the GPU with DALI",
    applies=_applies,
    change=decode_by("dali"),
    untried_for=lambda _: "" if is_installed() else NOT_INSTALLED,
    relieves={"decode": 0.0, "transform": 0.0},
    effort=2,
    code="""import torch
from nvidia.dali import fn, pipeline_def, types
from nvidia.dali.plugin.pytorch import feed_ndarray

device = "cuda"

@pipeline_def(batch_size=256, num_threads=4, device_id=0, prefetch_queue_depth=1)
def pipeline():  # batches of up to 256 images
    files = fn.external_source(name="files", dtype=types.UINT8, ndim=1)
    return fn.decoders.image(files, device="mixed", adjust_orientation=False, jpeg_fancy_upsampling=True)

jpegs = pipeline()

def decode(files):  # uint8 tensors of read_file: workers read the files, the loop decodes them
    images, = jpegs.run(files=[file.numpy() for file in files])
    stream = torch.cuda.current_stream()
    copies = [torch.empty(image.shape(), dtype=torch.uint8, device=device) for image in images]
    for image, copy in zip(images, copies):
        feed_ndarray(image, copy, cuda_stream=stream)  # DALI reuses its memory after the copy
    return [copy.permute(2, 0, 1).contiguous() for copy in copies]  # crop and stack them on the GPU
""",
    costs=("GPU memory, and a longer training step", "One more package"),
    changes_pixels=True,
)
