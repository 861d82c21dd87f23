"""The format `tfrecord`: records of `tf.train.Example`, with the names of TensorFlow's ImageNet scripts.

Both encodings are short, and implemented here without TensorFlow:
https://www.tensorflow.org/tutorials/load_data/tfrecord for records, https://protobuf.dev/programming-guides/encoding
for their content.
"""

from __future__ import annotations

import os
import struct
from collections.abc import Iterable, Iterator
from importlib import import_module
from pathlib import Path
from typing import Any, BinaryIO, ClassVar

from loaderbench.formats.format import Format, Item, PartReader, Place, SharedReader, exactly

SHARD = "images.tfrecord"
ENCODED, LABEL, NAME = "image/encoded", "image/class/label", "image/filename"

_LENGTH, _CHECKSUM = struct.Struct("<Q"), struct.Struct("<I")
_HEAD_BYTES = _LENGTH.size + _CHECKSUM.size
_MASK = 0xA282EAD8  # added to each checksum, which TensorFlow then calls masked
_BYTES_LIST, _INT64_LIST = 1, 3  # field numbers of the kinds of a `tf.train.Feature`
_VARINT, _FIXED64, _BYTES, _FIXED32 = 0, 1, 2, 5  # wire types of a field


class TfRecordReader(SharedReader):
    """Locate all records of a shard when it is opened, and read each with a single system call."""

    def open(self, part: Path) -> list[Place]:
        """Walk from header to header. Raises `ValueError` for a shard that ends within a record."""
        file = os.open(part / SHARD, os.O_RDONLY)
        try:
            return [*_places(file)]
        except BaseException:
            os.close(file)
            raise

    def read(self, opened: list[Place], place: int) -> bytes:
        """Read one record, and verify its checksum."""
        if place >= len(opened):
            raise ValueError(f"it has {len(opened)} records")
        file, begin, end = opened[place]
        return image_in(_checked(memoryview(exactly(file, end - begin, begin))))


class TfRecord(Format):
    """TFRecord shards, which tf.data reads sequentially."""

    needs: ClassVar[str] = "google_crc32c"
    install: ClassVar[str] = "uv pip install google-crc32c"
    reads: ClassVar[type[PartReader[Any]]] = TfRecordReader

    def write_part(self, items: Iterable[Item], folder: Path) -> None:
        """Write one shard."""
        with (folder / SHARD).open("wb") as shard:
            for item in items:
                _write(shard, example(item))


def example(item: Item) -> bytes:
    """Serialize a `tf.train.Example` with the image, its label and its name."""
    features = (
        (LABEL, _field(_INT64_LIST, _field(1, _varint(item.label & 0xFFFF_FFFF_FFFF_FFFF)))),
        (ENCODED, _field(_BYTES_LIST, _field(1, item.data))),
        (NAME, _field(_BYTES_LIST, _field(1, (item.key + item.suffix).encode()))),
    )
    return _field(1, b"".join(_field(1, _field(1, name.encode()) + _field(2, feature)) for name, feature in features))


def image_in(record: memoryview) -> bytes:
    """The image of a serialized `tf.train.Example`. Raises `ValueError` if there is none."""
    for _, features in _fields(record):
        for _, entry in _fields(features):
            found = dict(_fields(entry))
            if bytes(found.get(1, b"")) == ENCODED.encode():
                return bytes(dict(_fields(dict(_fields(found[2]))[_BYTES_LIST]))[1])
    raise ValueError(f"no {ENCODED}")


def _write(shard: BinaryIO, record: bytes) -> None:
    """Write length and record, each with its checksum."""
    length = _LENGTH.pack(len(record))
    shard.write(length + _CHECKSUM.pack(_masked(length)))
    shard.write(record)
    shard.write(_CHECKSUM.pack(_masked(record)))


def _places(file: int) -> Iterator[Place]:
    """Yield the position of each record with its checksum."""
    end, place = os.fstat(file).st_size, 0
    while place < end:
        length = _checked(memoryview(os.pread(file, _HEAD_BYTES, place)))
        (size,) = _LENGTH.unpack(length)
        place += _HEAD_BYTES
        after = place + size + _CHECKSUM.size
        if after > end:
            raise ValueError(f"truncated at {end} bytes")
        yield Place(file, place, after)
        place = after


def _checked(found: memoryview) -> memoryview:
    """The data before a checksum. Raises `ValueError` if they do not match."""
    data, checksum = found[: -_CHECKSUM.size], found[-_CHECKSUM.size :]
    if len(checksum) < _CHECKSUM.size or _CHECKSUM.unpack(checksum)[0] != _masked(bytes(data)):
        raise ValueError("a checksum does not match")
    return data


def _masked(data: bytes) -> int:
    crc32c: Any = import_module("google_crc32c")
    found: int = crc32c.value(data)
    return (((found >> 15) | (found << 17)) + _MASK) & 0xFFFF_FFFF


def _field(number: int, data: bytes) -> bytes:
    """Encode a field of bytes, or of an encoded message."""
    return b"".join((_varint(number << 3 | _BYTES), _varint(len(data)), data))


def _varint(value: int) -> bytes:
    """Encode seven bits per byte, lowest first; all bytes but the last have the eighth bit set."""
    found = bytearray()
    while value > 0x7F:
        found.append(value & 0x7F | 0x80)
        value >>= 7
    found.append(value)
    return bytes(found)


def _fields(message: memoryview) -> Iterator[tuple[int, memoryview]]:
    """Yield the fields of bytes and messages; numbers are skipped."""
    place, sizes = 0, {_FIXED64: 8, _FIXED32: 4}
    while place < len(message):
        key, place = _read_varint(message, place)
        number, kind = key >> 3, key & 7
        if kind == _VARINT:
            _, place = _read_varint(message, place)
        elif kind == _BYTES:
            size, place = _read_varint(message, place)
            yield number, message[place : place + size]
            place += size
        else:
            place += sizes[kind]


def _read_varint(message: memoryview, place: int) -> tuple[int, int]:
    """Return a number, and the position after it."""
    value = shift = 0
    while True:
        byte = message[place]
        place += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value, place
        shift += 7
