"""Whether the GPU decodes JPEGs for `decoder: device`, how fast, and how close its pixels are to those of the CPU."""

from __future__ import annotations

from loaderbench.diagnosis.failures import classify
from loaderbench.gpu_checkup.rates import finished_per_s
from loaderbench.gpu_checkup.records import CheckedDevice, CheckState, GpuCheck
from loaderbench.gpu_checkup.usable import named

LEAST_PSNR_DB = 30.0
"""Decoders round and upsample colors differently, and stay above this; wrong colors fall below."""

_IMAGES, _BATCHES = 32, 8
_ID, _TITLE = "decode", "JPEG decoding on the GPU"


def check_decoding(device: CheckedDevice) -> GpuCheck:
    """Decode batches of one photo. A torchvision without a GPU decoder is a warning. CUDA errors are raised."""
    try:
        psnr_db = device.decoded_psnr_db()
    except (RuntimeError, ImportError) as error:
        if classify(f"{type(error).__name__}: {error}").kind != "error":
            raise
        why = f"{named(error)}; `decoder: device` does not work here"
        return GpuCheck(id=_ID, title=_TITLE, state="warning", said=why, not_measured={"images_per_s": why})
    rate = finished_per_s(device, lambda: device.decode(_IMAGES), _IMAGES, calls=_BATCHES)
    close = "same pixels as on the CPU" if psnr_db is None else f"PSNR {psnr_db:.0f} dB against the CPU"
    state: CheckState = "passed"
    if psnr_db is not None and psnr_db < LEAST_PSNR_DB:
        state, close = "warning", f"{close}, less than {LEAST_PSNR_DB:.0f} dB: do not train on such images"
    return GpuCheck(
        id=_ID,
        title=_TITLE,
        state=state,
        said=f"{rate.est:,.0f} images/s; {close}",
        expected={"psnr_at_least_db": LEAST_PSNR_DB},
        found={"images_per_s": rate, "psnr_db": psnr_db},
        not_measured={} if psnr_db is not None else {"psnr_db": "identical pixels"},
    )
