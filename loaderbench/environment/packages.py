"""Whether torch, torchvision and the decoders work, found out in a process of its own: a wrong pair may crash it."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, Literal


@dataclass(frozen=True)
class Check:
    """What was looked at, how it stands, and what to do where it does not stand well."""

    name: str
    state: Literal["ok", "warn", "bad"]
    said: str
    fix: str = ""


_TIMEOUT_S = 120.0
_REINSTALL = "uv pip install --reinstall torch torchvision installs a pair that fits"
_SCRIPT = """
import io, json, sys
found = {"python": sys.version.split()[0]}
def look(name, what):
    try:
        found[name] = what()
    except BaseException as error:
        found[name] = {"error": f"{type(error).__name__}: {error}".splitlines()[0][:300]}
def torch_():
    import torch
    return {"version": torch.__version__, "cuda": torch.version.cuda, "available": torch.cuda.is_available(),
            "devices": [torch.cuda.get_device_name(i) for i in range(torch.cuda.device_count())]}
def torchvision_():
    import torch, torchvision
    torchvision.ops.nms(torch.zeros((1, 4)), torch.zeros(1), 0.5)
    return {"version": torchvision.__version__}
def jpeg():
    from PIL import Image
    kept = io.BytesIO()
    Image.new("RGB", (16, 16)).save(kept, "JPEG")
    return kept.getvalue()
def pillow():
    import PIL
    from PIL import Image, features
    Image.open(io.BytesIO(jpeg())).load()
    return {"version": PIL.__version__, "turbo": bool(features.check_feature("libjpeg_turbo")),
            "webp": features.check("webp")}
def decode():
    import torch, torchvision.io
    torchvision.io.decode_jpeg(torch.frombuffer(bytearray(jpeg()), dtype=torch.uint8))
    return {}
def simplejpeg_():
    import simplejpeg
    simplejpeg.decode_jpeg(jpeg())
    return {}
for name, what in (("torch", torch_), ("torchvision", torchvision_), ("pillow", pillow), ("decode_jpeg", decode),
                   ("simplejpeg", simplejpeg_)):
    look(name, what)
print(json.dumps(found))
"""


@dataclass(frozen=True)
class PackageHealth:
    """What each package said of itself; a dictionary with `error` is one that does not work."""

    found: dict[str, Any] = field(default_factory=dict)
    crashed: str = ""

    def checks(self) -> Iterator[Check]:
        """A line for each package, and one for the accelerator."""
        if self.crashed:
            yield Check("torch", "bad", f"importing it ended a process: {self.crashed}", _REINSTALL)
            return
        yield self._of("torch", "torch", required=True)
        yield self._of("torchvision", "torchvision", required=True)
        yield self._accelerator()
        yield self._pillow()
        yield self._of("decode_jpeg", "torchvision's JPEG decoder", required=False, said="decodes")
        yield self._optional()

    def _of(self, name: str, shown: str, *, required: bool, said: str = "") -> Check:
        found = self.found.get(name, {"error": "it did not answer"})
        if "error" in found:
            return Check(shown, "bad" if required else "warn", found["error"], _REINSTALL)
        return Check(shown, "ok", said or str(found.get("version")))

    def _accelerator(self) -> Check:
        torch = self.found.get("torch", {})
        if torch.get("devices"):
            return Check("Accelerator", "ok", f"{', '.join(torch['devices'])} (CUDA {torch['cuda']})")
        if torch.get("cuda") and not torch.get("available"):
            said = "none: torch was built for CUDA and sees no device"
            return Check("Accelerator", "ok", f"{said}; suites with consumer.kind: auto emulate one")
        return Check(
            "Accelerator", "ok", "none: this torch is a CPU build; suites with consumer.kind: auto emulate one"
        )

    def _pillow(self) -> Check:
        found = self.found.get("pillow", {"error": "it did not answer"})
        if "error" in found:
            return Check("Pillow", "bad", found["error"], "uv pip install --reinstall pillow")
        said = f"{found['version']}, {'with' if found['turbo'] else 'WITHOUT'} libjpeg-turbo"
        if not found["turbo"]:
            fix = "a Pillow built without libjpeg-turbo decodes at half the speed: install its wheel"
            return Check("Pillow", "warn", said, fix)
        return Check("Pillow", "ok", said + ("" if found["webp"] else ", no WebP"))

    def _optional(self) -> Check:
        there = "error" not in self.found.get("simplejpeg", {"error": ""})
        said = "decodes" if there else "not installed (optional: uv pip install simplejpeg)"
        return Check("simplejpeg", "ok", said)


def look_at_packages(executable: str = sys.executable) -> PackageHealth:
    """Ask a new process; one that dies or hangs is an answer too."""
    try:
        asked = subprocess.run(
            [executable, "-c", _SCRIPT], capture_output=True, text=True, timeout=_TIMEOUT_S, check=False
        )
    except subprocess.TimeoutExpired:
        return PackageHealth(crashed=f"no answer in {_TIMEOUT_S:.0f} s")
    try:
        return PackageHealth(json.loads(asked.stdout.splitlines()[-1]))
    except (IndexError, ValueError):
        return PackageHealth(crashed=(asked.stderr.strip().splitlines() or [f"exit code {asked.returncode}"])[-1][:300])
