"""Imports that the fork server makes once, so each trial starts in milliseconds. Nothing here initializes CUDA."""

from __future__ import annotations

import gc

IMPORT_ERROR: str | None = None

gc.disable()  # imports create little garbage, and collecting it takes a tenth of their time
try:
    import PIL.Image
    import torchvision.io
    import torchvision.transforms  # noqa: F401

    import loaderbench.consumers
    import loaderbench.datasets.image_samples
    import loaderbench.loaders
    import loaderbench.recorder  # noqa: F401
except Exception as error:  # mismatched builds of torch and torchvision raise RuntimeError
    IMPORT_ERROR = f"{type(error).__name__}: {error}"
else:
    PIL.Image.preinit()
    gc.freeze()  # keeps a child's garbage collection from copying the shared pages
finally:
    gc.enable()
