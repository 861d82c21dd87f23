"""Functions of libraries that read or decode, whoever calls them: how the inside of an opaque dataset is seen.

In a worker they stay replaced, for the process is its own. In the user's process they are replaced while a batch is
made, and put back before it is handed out; what other code put there meanwhile is left alone.
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
    ("cv2", "imread"),  # reads as well, inside
    ("cv2", "imdecode"),
    ("simplejpeg", "decode_jpeg"),
)
_OPERATORS = "image"  # torchvision's namespace of torch.ops, which every function of torchvision.io ends in
_READERS = ("read_file",)
_IMAGE_DECODERS = ("decode_image", "decode_jpeg", "decode_png", "decode_gif", "decode_webp")
PLAIN_OPEN = ((), (-1,), (-1, None, None, None))  # what pathlib passes on, too

Does = Literal["open", "read", "decode", "image"]
"""What a function of a library does: opens a file, reads one, decodes bytes, or opens an image that decodes later."""

_lock = threading.RLock()  # reentrant: a signal handler may load a batch while this is held
_users = 0
_placed: list[tuple[Any, str, Any, Any]] = []
_made: dict[tuple[int, str], tuple[Any, Any]] = {}  # owner and name to the original and its replacement


def install() -> None:
    """Replace what is loaded, unless somebody did already."""
    global _users  # noqa: PLW0603 - the functions are the process's, and so is their count
    with _lock:
        _users += 1
        if _users > 1:
            return
        for owner, name, make in _targets():
            original = vars(owner).get(name)
            known = _made.get((id(owner), name))
            if original is None or (known and known[1] is original):
                continue
            if known is None or known[0] is not original:
                known = _made[id(owner), name] = (original, functools.wraps(original)(make(original)))
            setattr(owner, name, known[1])
            _placed.append((owner, name, *known))


def remove() -> None:
    """Put back what was there, when the last user of the replacements leaves."""
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
    """A thread that held the lock at a fork does not exist in the child."""
    global _lock  # noqa: PLW0603
    _lock = threading.RLock()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_unlock_in_child)


def _targets() -> Iterator[tuple[Any, str, Callable[[Any], Any]]]:
    """Owner, name, and what makes the replacement of what was found there."""
    timed: dict[Does, Callable[[Any], Any]] = {
        "open": _timed_open, "decode": _timed_decoder, "image": _timed_image, "read": _timed_read,
    }  # fmt: skip
    for owner, name, does in library_functions():
        if does == "open" and not isinstance(vars(owner)[name], BuiltinFunctionType):
            continue  # the user has replaced it; theirs may open another file
        yield owner, name, timed[does]


def library_functions() -> Iterator[tuple[Any, str, Does]]:
    """Owner, name and kind of all functions that read or decode, of the libraries that are loaded."""
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
            if hasattr(operators, name):  # which also makes it an attribute
                yield operators, name, "read" if name in _READERS else "decode"


def _timing() -> Tracer | None:
    """The calling thread's tracer, while it times a sample."""
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
    """`PIL.Image.open`, whose images decode when they are loaded: that is timed on the image itself, the first time."""

    def open_image(*args: Any, **kwargs: Any) -> Any:
        tracer = _timing()
        if tracer is None or tracer.clock.top in tracer.decoding:
            return original(*args, **kwargs)
        image = _in_stage(original, tracer, tracer.decode, *args, **kwargs)
        with suppress(TypeError):  # of a class that cannot be subclassed for it
            set_class(image, _timed_image_class(type(image)))  # type: ignore[arg-type]
        return image

    return open_image


@functools.cache
def _timed_image_class(kind: type) -> type:
    """The class of an image until it is loaded. A method set on the image itself would keep it alive."""

    def load(image: Any, *args: Any, **kwargs: Any) -> Any:
        set_class(image, kind)
        still = _timing()
        if still is None:
            return image.load(*args, **kwargs)
        return _in_stage(image.load, still, still.decode, *args, **kwargs)

    return timed_class(kind, {"load": load})


def _timed_open(original: Any) -> Callable[..., Any]:
    """`open` whose binary files time their reads from the system, not those from their buffer."""

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
    """A file whose reads are charged to the stage `read` while its thread is traced."""

    def __init__(self, path: str | bytes, tracer: Tracer) -> None:
        super().__init__(path, "rb")
        self._tracer, self._clock, self._read_stage = tracer, tracer.clock, tracer.read

    def readinto(self, buffer: Any) -> int | None:
        """Read into the buffer."""
        began_s = now_s()
        result = _readinto(self, buffer)
        self.note(now_s() - began_s, result or 0)
        return result

    def readall(self) -> bytes:
        """Read to the end."""
        began_s = now_s()
        result = super().readall()
        self.note(now_s() - began_s, len(result))
        return result

    def read(self, size: int = -1) -> bytes | None:  # type: ignore[override]
        """Read so many bytes, or to the end."""
        began_s = now_s()
        result = super().read(size)
        self.note(now_s() - began_s, len(result or b""))
        return result

    def note(self, took_s: float, read_bytes: int = 0) -> None:
        """Charge what a call took and read, unless another thread made it, which has a tracer of its own."""
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
    """What `open` would buffer of this file."""
    block_bytes = int(getattr(raw, "_blksize", 0))
    if sys.version_info >= (3, 14):
        return max(min(block_bytes, _MOST_BUFFERED), io.DEFAULT_BUFFER_SIZE)
    return block_bytes if block_bytes > 1 else io.DEFAULT_BUFFER_SIZE
