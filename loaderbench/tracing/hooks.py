"""Patches library functions that read or decode, to see inside an opaque dataset.

In a worker the patches are permanent. In the user's process they are installed while a batch is loaded and removed
before it is handed out. A function that other code has replaced since is left alone.
"""

from __future__ import annotations

import builtins
import functools
import io
import os
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import suppress
from types import BuiltinFunctionType
from typing import Any, Literal

from loaderbench.tracing.active import local
from loaderbench.tracing.clock import LIGHT_S, now_s, thread
from loaderbench.tracing.timed_class import set_class, timed_class
from loaderbench.tracing.tracer import Tracer

_DECODERS = (
    ("cv2", "imread"),  # also reads the file
    ("cv2", "imdecode"),
    ("simplejpeg", "decode_jpeg"),
)
_OPERATORS = "image"  # torchvision's namespace in torch.ops, used by every function of torchvision.io
_READERS = ("read_file",)
_IMAGE_DECODERS = ("decode_image", "decode_jpeg", "decode_png", "decode_gif", "decode_webp")
PLAIN_OPEN = ((), (-1,), (-1, None, None, None))  # arguments that mean the defaults, including those of pathlib

Does = Literal["open", "read", "decode", "image"]
"""What a library function does: open a file, read a file, decode bytes, or open an image that decodes later."""

_lock = threading.RLock()  # reentrant: a signal handler can load a batch while this lock is held
_users = 0
_placed: list[tuple[Any, str, Any, Any]] = []
_replacements: dict[tuple[int, str], tuple[Any, Any]] = {}  # by owner and name: the original and its replacement


def install() -> None:
    """Patch the functions of loaded libraries, unless another user of the patches already did."""
    global _users  # noqa: PLW0603 - patches are process-wide, and so is the number of users
    with _lock:
        _users += 1
        if _users > 1:
            return
        for owner, name, make in _targets():
            original = vars(owner).get(name)
            known = _replacements.get((id(owner), name))
            if original is None or (known and known[1] is original):
                continue
            if known is None or known[0] is not original:
                known = _replacements[id(owner), name] = (original, functools.wraps(original)(make(original)))
            setattr(owner, name, known[1])
            _placed.append((owner, name, *known))


def remove() -> None:
    """Restore the original functions once the last user of the patches is done."""
    global _users  # noqa: PLW0603
    with _lock:
        _users -= 1
        if _users:
            return
        for owner, name, original, replacement in _placed:
            if vars(owner).get(name) is replacement:
                setattr(owner, name, original)
        _placed.clear()


def _unlock_in_child() -> None:
    """Replace the lock after a fork: a thread that held it does not exist in the child process."""
    global _lock  # noqa: PLW0603
    _lock = threading.RLock()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_unlock_in_child)


def _targets() -> Iterator[tuple[Any, str, Callable[[Any], Any]]]:
    """Owner and name of each function to patch, with the factory of its replacement."""
    timed: dict[Does, Callable[[Any], Any]] = {
        "open": _timed_open, "decode": _timed_decoder, "image": _timed_image, "read": _timed_read,
    }  # fmt: skip
    for owner, name, does in library_functions():
        if does == "open" and not isinstance(vars(owner)[name], BuiltinFunctionType):
            continue  # replaced by the user, whose function may open a different file
        yield owner, name, timed[does]


def library_functions() -> Iterator[tuple[Any, str, Does]]:
    """Owner, name and kind of every function that reads or decodes, in the libraries that are loaded."""
    for owner in (builtins, io):
        yield owner, "open", "open"
    for module, name in _DECODERS:
        if module in sys.modules:
            yield sys.modules[module], name, "decode"
    nvimagecodec = getattr(sys.modules.get("nvidia.nvimgcodec"), "Decoder", None)
    if nvimagecodec is not None:  # uninstalling leaves an empty package
        yield nvimagecodec, "decode", "decode"
    if "PIL.Image" in sys.modules:
        yield sys.modules["PIL.Image"], "open", "image"
    if "torchvision.io" in sys.modules:
        operators = getattr(sys.modules["torch"].ops, _OPERATORS)
        for name in (*_READERS, *_IMAGE_DECODERS):
            if hasattr(operators, name):  # hasattr also creates the attribute
                yield operators, name, "read" if name in _READERS else "decode"


def _timing() -> Tracer | None:
    """The calling thread's tracer while it times a sample, else `None`."""
    tracer = local.tracer
    return tracer if tracer is not None and tracer.clock.ident == thread() else None


def _in_stage(call: Callable[..., Any], tracer: Tracer, place: int, *args: Any, **kwargs: Any) -> Any:
    tracer.clock.enter(place)
    try:
        return call(*args, **kwargs)
    finally:
        tracer.clock.leave()


def _timed_read(original: Any) -> Callable[..., Any]:
    def read(path: Any, *args: Any, **kwargs: Any) -> Any:
        if (tracer := _timing()) is None:
            return original(path, *args, **kwargs)
        tracer.path = path
        result = _in_stage(original, tracer, tracer.read, path, *args, **kwargs)
        tracer.read_bytes += result.numel()
        return result

    return read


def _timed_decoder(original: Any) -> Callable[..., Any]:
    def decode(*args: Any, **kwargs: Any) -> Any:
        tracer = _timing()
        if tracer is None or tracer.clock.top in tracer.decoding:
            return original(*args, **kwargs)
        return _in_stage(original, tracer, tracer.decode, *args, **kwargs)

    return decode


def _timed_image(original: Any) -> Callable[..., Any]:
    """Wrap `PIL.Image.open`. Images decode when they are first loaded, so `load` of each image is timed, too."""

    def open_image(*args: Any, **kwargs: Any) -> Any:
        tracer = _timing()
        if tracer is None or tracer.clock.top in tracer.decoding:
            return original(*args, **kwargs)
        image = _in_stage(original, tracer, tracer.decode, *args, **kwargs)
        with suppress(TypeError):  # its class cannot be subclassed
            set_class(image, _timed_image_class(type(image)))  # type: ignore[arg-type]
        return image

    return open_image


@functools.cache
def _timed_image_class(kind: type) -> type:
    """The class of an image until it is loaded. A method set on the image itself would keep the image alive."""

    def load(image: Any, *args: Any, **kwargs: Any) -> Any:
        set_class(image, kind)
        still = _timing()
        if still is None:
            return image.load(*args, **kwargs)
        return _in_stage(image.load, still, still.decode, *args, **kwargs)

    return timed_class(kind, {"load": load})


def _timed_open(original: Any) -> Callable[..., Any]:
    """Wrap `open`: binary files time their system reads, but not reads from their buffer."""

    def open_timed(file: Any, mode: str = "r", *args: Any, **kwargs: Any) -> Any:
        tracer = local.tracer if mode == "rb" and args in PLAIN_OPEN and not kwargs else None
        if tracer is None or tracer.clock.ident != thread() or not isinstance(file, str | os.PathLike):
            return original(file, mode, *args, **kwargs)
        tracer.path = path = os.fspath(file)
        began_s = now_s()
        raw = TimedFile(path, tracer)
        raw.note(now_s() - began_s)
        return io.BufferedReader(raw, buffer_bytes(raw))

    return open_timed


_readinto = io.FileIO.readinto
_MOST_BUFFERED = 8 * 1024 * 1024


class TimedFile(io.FileIO):
    """A file that charges its reads to the stage `read` while its thread is traced."""

    def __init__(self, path: str | bytes, tracer: Tracer) -> None:
        super().__init__(path, "rb")
        self._tracer, self._clock, self._read_stage = tracer, tracer.clock, tracer.read

    def readinto(self, buffer: Any) -> int | None:
        """Read into the buffer, timed."""
        began_s = now_s()
        result = _readinto(self, buffer)
        self.note(now_s() - began_s, result or 0)
        return result

    def readall(self) -> bytes:
        """Read to the end of the file, timed."""
        began_s = now_s()
        result = super().readall()
        self.note(now_s() - began_s, len(result))
        return result

    def read(self, size: int = -1) -> bytes | None:  # type: ignore[override]
        """Read up to `size` bytes, or to the end of the file, timed."""
        began_s = now_s()
        result = super().read(size)
        self.note(now_s() - began_s, len(result or b""))
        return result

    def note(self, took_s: float, read_bytes: int = 0) -> None:
        """Charge the duration and bytes of a call, unless it came from another thread, which has its own tracer."""
        clock = self._clock
        if clock.ident != thread():
            return
        self._tracer.read_bytes += read_bytes
        if took_s < LIGHT_S:
            clock.read_s += took_s
            clock.reads += 1
        else:
            clock.light(self._read_stage, took_s)


def buffer_bytes(raw: io.FileIO) -> int:
    """The buffer size that `open` would use for this file."""
    block_bytes = int(getattr(raw, "_blksize", 0))
    if sys.version_info >= (3, 14):
        return max(min(block_bytes, _MOST_BUFFERED), io.DEFAULT_BUFFER_SIZE)
    return block_bytes if block_bytes > 1 else io.DEFAULT_BUFFER_SIZE
