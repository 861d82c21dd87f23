"""Whether the GPU decodes JPEGs, how fast, and how near to the pixels of the CPU: what `decoder: device` needs."""

from __future__ import annotations

from loaderbench.diagnosis.failures import classify
from loaderbench.gpu_checkup.records import CheckedDevice, CheckState, GpuCheck
from loaderbench.gpu_checkup.usable import named
from loaderbench.statistics.intervals import rate_interval

LEAST_PSNR_DB = 30.0
"""Decoders round and upsample colors differently, which leaves more than that; wrong colors leave less."""

_IMAGES, _BATCHES, _UNCOUNTED = 32, 8, 2
_ID, _TITLE = "decode", "JPEG decoding on the GPU"


def check_decoding(device: CheckedDevice) -> GpuCheck:
    """Decode batches of one photo. Raises what CUDA says; a torchvision that cannot decode there is a warning."""
    try:
        psnr_db = device.decoded_psnr_db()
    except (RuntimeError, ImportError) as error:
        if classify(f"{type(error).__name__}: {error}").kind != "error":
            raise
        why = f"{named(error)}; `decoder: device` does not work here"
        return GpuCheck(id=_ID, title=_TITLE, state="warning", said=why, not_measured={"images_per_s": why})
    rate = rate_interval(_rates(device))
    near = "the pixels of the CPU" if psnr_db is None else f"PSNR {psnr_db:.0f} dB against the CPU"
    state: CheckState = "passed"
    if psnr_db is not None and psnr_db < LEAST_PSNR_DB:
        state, near = "warning", f"{near}, less than {LEAST_PSNR_DB:.0f} dB: do not train on such images"
    return GpuCheck(
        id=_ID,
        title=_TITLE,
        state=state,
        said=f"{rate.est:,.0f} images/s; {near}",
        expected={"psnr_at_least_db": LEAST_PSNR_DB},
        found={"images_per_s": rate, "psnr_db": psnr_db},
        not_measured={} if psnr_db is not None else {"psnr_db": "identical pixels"},
    )


def _rates(device: CheckedDevice) -> list[float]:
    """Images/s of each batch, until it is decoded."""
    rates = []
    for number in range(_UNCOUNTED + _BATCHES):
        device.synchronize()
        began_s = device.now_s()
        device.decode(_IMAGES)
        device.synchronize()
        if number >= _UNCOUNTED:
            rates.append(_IMAGES / (device.now_s() - began_s))
    return rates
