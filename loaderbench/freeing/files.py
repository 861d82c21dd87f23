"""Make reading and decoding free: library functions for either replay their earlier results."""

from __future__ import annotations

import functools
import io
import os
from collections.abc import Callable, Sequence
from typing import Any

from loaderbench.freeing.replay import Making, Read, Replay
from loaderbench.tracing.hooks import PLAIN_OPEN, Does, library_functions

_READS_ITSELF = ("imread",)  # decoders that take a path


def free_reads(making: Making) -> list[Replay]:
    """Keep the contents of files in memory, and open files without a system call."""
    replay = Replay(making)

    def open_kept(original: Any, file: Any, mode: str = "r", *args: Any, **kwargs: Any) -> Any:
        if not (making.is_under_way and _is_plain(file, mode, args, kwargs)):
            return original(file, mode, *args, **kwargs)
        return io.BytesIO(replay(lambda: _bytes_of(original, file)))

    _replace({"open": open_kept, "read": replay})
    return [replay]


def note_reads(making: Making) -> None:
    """Record the files that kept calls read, so replays can read them again."""

    def open_noted(original: Any, file: Any, mode: str = "r", *args: Any, **kwargs: Any) -> Any:
        if making.reads is not None and _is_plain(file, mode, args, kwargs):
            making.reads.append(_read_again(lambda path: _bytes_of(open, path), file, making.arguments))
        return original(file, mode, *args, **kwargs)

    def read_noted(original: Any, path: Any, *args: Any, **kwargs: Any) -> Any:
        if making.reads is not None:
            making.reads.append(_read_again(original, path, making.arguments))
        return original(path, *args, **kwargs)

    _replace({"open": open_noted, "read": read_noted})


def note_decoding(making: Making) -> None:
    """Record what kept calls decoded, including images opened earlier, so replays can decode it again."""

    def decode_noted(original: Any, *args: Any, **kwargs: Any) -> Any:
        if making.reads is not None:
            making.reads.append(lambda _: original(*args, **kwargs))
        return original(*args, **kwargs)

    def image_noted(original: Any, *args: Any, **kwargs: Any) -> Any:
        image = original(*args, **kwargs)

        def note() -> None:
            if making.reads is not None:
                making.reads.append(_load_like(image))

        _after_load(image, note)
        return image

    _replace({"decode": decode_noted, "image": image_noted})


def free_decoders(making: Making) -> list[Replay]:
    """Make library decoders return the pixels of an earlier call; files are still read."""
    replays: list[Replay] = []

    def decoder(original: Any) -> Callable[..., Any]:
        replays.append(replay := Replay(making, with_reads=True))
        reads = getattr(original, "__name__", "") in _READS_ITSELF

        def decode(*args: Any, **kwargs: Any) -> Any:
            if reads and making.is_under_way and not making.keeps:
                _bytes_of(open, args[0])
            return replay(original, *args, **kwargs)

        return decode

    def image(original: Any) -> Callable[..., Any]:
        replays.append(replay := Replay(making, with_reads=True))
        return lambda *args, **kwargs: _kept_image(making, replay, original, args, kwargs)

    makers = {"decode": decoder, "image": image}
    for owner, name, does in list(library_functions()):
        if does in makers:
            original = getattr(owner, name)
            setattr(owner, name, functools.wraps(original)(makers[does](original)))
    return replays


def _kept_image(making: Making, replay: Replay, original: Any, args: Any, kwargs: Any) -> Any:
    """Keep an image of `PIL.Image.open` once its pixels are loaded, possibly at a lower resolution."""
    if not making.is_under_way:
        return original(*args, **kwargs)
    if not making.keeps:
        if args and hasattr(args[0], "read"):
            args[0].read()
        return replay(original, *args, **kwargs)
    making.reads, making.arguments = [], args
    image = original(*args, **kwargs)
    reads, making.reads = making.reads, None

    def keep() -> None:
        if making.keeps:
            replay.keep(image, reads or ())

    _after_load(image, keep)
    return image


def _after_load(image: Any, then: Callable[[], None]) -> None:
    """Call `then` after the pixels of a PIL image are first loaded."""
    load = image.load

    def load_once(*given: Any, **named: Any) -> Any:
        vars(image).pop("load", None)
        result = load(*given, **named)
        then()
        return result

    image.load = load_once


def _load_like(loaded: Any) -> Read:
    """Return a function that loads the current call's PIL image at the scale at which libjpeg decoded `loaded`."""
    scale = (getattr(loaded, "decoderconfig", ()) or (1,))[0]

    def load(args: Sequence[Any]) -> None:
        if args and hasattr(args[0], "draft"):
            width, height = args[0].size
            args[0].draft(None, (max(1, width // scale), max(1, height // scale)))
            args[0].load()

    return load


def _replace(around: dict[Does, Callable[..., Any]]) -> None:
    """Wrap library functions and methods permanently, since loaderbench owns the process."""
    for owner, name, does in list(library_functions()):
        if does in around:
            setattr(owner, name, _wrapped(getattr(owner, name), around[does]))


def _wrapped(original: Any, around: Callable[..., Any]) -> Any:
    @functools.wraps(original)
    def run(*args: Any, **kwargs: Any) -> Any:
        return around(original, *args, **kwargs)

    return run


def _is_plain(file: Any, mode: str, args: Any, kwargs: Any) -> bool:
    """Whether a file is opened for its bytes, by path."""
    return mode == "rb" and args in PLAIN_OPEN and not kwargs and isinstance(file, str | os.PathLike)


def _bytes_of(opens: Any, path: Any) -> bytes:
    with opens(path, "rb") as file:
        found: bytes = file.read()
    return found


def _read_again(read: Callable[[Any], Any], path: Any, given: Sequence[Any]) -> Read:
    """Return a function that reads the same path again, or the current call's first argument if the path was that."""
    is_given = bool(given) and given[0] is path

    def again(args: Sequence[Any]) -> None:
        read(args[0] if is_given and args else path)

    return again
