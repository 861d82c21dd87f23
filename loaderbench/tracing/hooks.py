"""Functions of libraries that read or decode, whoever calls them: how the inside of an opaque dataset is seen.

In a worker they stay replaced, for the process is its own. In the user's process they are replaced while the loader
makes a batch, and put back before the batch is handed out.
"""

from __future__ import annotations

import builtins
import functools
import io
import os
import sys
from collections.abc import Callable, Iterator
from typing import Any

from loaderbench.tracing.clock import thread
from loaderbench.tracing.standins import timed
from loaderbench.tracing.tracer import Tracer

_DECODERS = (
    ("PIL.Image", "open"),
    ("cv2", "imread"),  # reads as well, inside
    ("cv2", "imdecode"),
    ("simplejpeg", "decode_jpeg"),
)
_TORCHVISION = "image"  # the namespace of its operators, which every function of torchvision.io ends in
_TORCHVISION_READS = ("read_file",)
_TORCHVISION_DECODERS = (
    "decode_image", "decode_jpeg", "decode_jpegs_cuda", "decode_png", "decode_gif", "decode_webp",
)  # fmt: skip


class Hooks:
    """Puts timed functions in the place of those that are loaded, and takes them away again."""

    def __init__(self, tracer: Tracer) -> None:
        self._tracer = tracer
        self._places: dict[tuple[int, str], tuple[Any, str, Any, Any]] = {}
        self._modules = 0

    def install(self) -> None:
        """Replace; looks for libraries that were loaded since."""
        if len(sys.modules) != self._modules:
            self._modules = len(sys.modules)
            self._find()
        for owner, name, _, replacement in self._places.values():
            setattr(owner, name, replacement)

    def remove(self) -> None:
        """Put back what was there."""
        for owner, name, original, _ in self._places.values():
            setattr(owner, name, original)

    def _find(self) -> None:
        tracer = self._tracer
        for owner, name, make in _targets(tracer):
            key = id(owner), name
            if key not in self._places and (original := vars(owner).get(name)) is not None:
                self._places[key] = (owner, name, original, functools.wraps(original)(make(original)))


def _targets(tracer: Tracer) -> Iterator[tuple[Any, str, Callable[[Any], Any]]]:
    """Owner, name, and what makes the replacement of what was found there."""
    decode = functools.partial(timed, tracer=tracer, place=tracer.place("decode"))
    read = functools.partial(_timed_read, tracer=tracer)
    for owner in (builtins, io):
        yield owner, "open", functools.partial(_timed_open, tracer)
    for module, name in _DECODERS:
        if module in sys.modules:
            yield sys.modules[module], name, decode
    if "PIL.ImageFile" in sys.modules:
        for image in _classes(sys.modules["PIL.ImageFile"].ImageFile):
            yield image, "load", functools.partial(_timed_load, tracer=tracer, place=tracer.place("decode"))
    if "torchvision.io" in sys.modules:
        operators = getattr(sys.modules["torch"].ops, _TORCHVISION)
        for name in (*_TORCHVISION_READS, *_TORCHVISION_DECODERS):
            if hasattr(operators, name):  # which also makes it an attribute
                yield operators, name, read if name in _TORCHVISION_READS else decode


def _classes(base: Any) -> Iterator[Any]:
    """The class and all its subclasses that have a `load` of their own."""
    if "load" in vars(base):
        yield base
    for kind in base.__subclasses__():
        yield from _classes(kind)


def _timed_read(original: Any, tracer: Tracer) -> Callable[..., Any]:
    run = timed(original, tracer, tracer.read)

    def read(path: Any, *args: Any, **kwargs: Any) -> Any:
        tracer.path = path
        return run(path, *args, **kwargs)

    return read


def _timed_load(original: Any, tracer: Tracer, place: int) -> Callable[..., Any]:
    """PIL asks for it again and again; an image without tiles is decoded already."""
    run = timed(original, tracer, place)

    def load(image: Any, *args: Any, **kwargs: Any) -> Any:
        return (run if getattr(image, "tile", True) else original)(image, *args, **kwargs)

    return load


def _timed_open(tracer: Tracer, original: Any) -> Callable[..., Any]:
    """`open` whose binary files time their reads from the system, not those from their buffer."""
    clock = tracer.clock

    def open_timed(file: Any, mode: str = "r", *args: Any, **kwargs: Any) -> Any:
        if clock.ident != thread() or mode != "rb" or args or kwargs or not isinstance(file, str | os.PathLike):
            return original(file, mode, *args, **kwargs)
        tracer.path = os.fspath(file)
        raw = timed(TimedFile, tracer, tracer.read)(file, tracer)
        return io.BufferedReader(raw, max(raw.blksize, io.DEFAULT_BUFFER_SIZE))

    return open_timed


class TimedFile(io.FileIO):
    """A file whose reads are charged to the stage `read` while its thread is traced."""

    def __init__(self, file: Any, tracer: Tracer) -> None:
        super().__init__(file, "rb")
        self._tracer = tracer

    @property
    def blksize(self) -> int:
        """What the system likes to be asked for at once."""
        return int(getattr(self, "_blksize", 0))

    def readinto(self, buffer: Any) -> int | None:
        """Read into the buffer."""
        return self._call(super().readinto, buffer)  # type: ignore[no-any-return]

    def readall(self) -> bytes:
        """Read to the end."""
        return self._call(super().readall)  # type: ignore[no-any-return]

    def read(self, size: int = -1) -> bytes | None:  # type: ignore[override]
        """Read so many bytes, or to the end."""
        return self._call(super().read, size)  # type: ignore[no-any-return]

    def _call(self, read: Callable[..., Any], *args: Any) -> Any:
        clock = self._tracer.clock
        if clock.ident != thread():
            return read(*args)
        clock.enter(self._tracer.read)
        try:
            return read(*args)
        finally:
            clock.leave()
