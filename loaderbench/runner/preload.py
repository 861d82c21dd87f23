"""What the fork server imports once, so that each trial starts in milliseconds. No CUDA is touched."""

from __future__ import annotations

import gc

IMPORT_ERROR: str | None = None

gc.disable()  # imports leave little garbage, and looking for it takes a tenth of their time
try:
    import PIL.Image
    import torchvision.io
    import torchvision.transforms  # noqa: F401

    import loaderbench.consumers
    import loaderbench.datasets.image_samples
    import loaderbench.loaders
    import loaderbench.recorder  # noqa: F401
except Exception as error:  # a pair of torch and torchvision that do not fit raise RuntimeError
    IMPORT_ERROR = f"{type(error).__name__}: {error}"
else:
    PIL.Image.preinit()
    gc.freeze()  # a child's garbage collection then does not copy the shared pages
finally:
    gc.enable()
