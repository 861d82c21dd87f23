"""Records of the format `tfrecord` are TensorFlow's own: each reads what the other writes, and finds its damage."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("google_crc32c")
from full_disk import error_of_full_disk, file_size_limited, samples_of

from loaderbench.errors import MissingError
from loaderbench.formats import Item, written_copy
from loaderbench.formats.tfrecord import SHARD, TfRecord, example, image_in
from loaderbench.loaders.tf_data import TfData

LABELS = [0, 1, 127, 128, 999, 1 << 40, -1, -(1 << 63)]


@pytest.fixture(scope="module")
def tf() -> Any:
    if not TfData().is_installed():
        pytest.skip("TensorFlow is not installed")
    from loaderbench.loaders.tf_images import tensorflow

    return tensorflow()


@pytest.fixture
def items() -> list[Item]:
    return [
        Item(f"{number:09d}", ".jpg", label, bytes(range(256)) * (number * 300) + b"end")
        for number, label in enumerate(LABELS)
    ]


@pytest.fixture
def shard(items: list[Item], tmp_path: Path) -> Path:
    TfRecord().write_part(items, tmp_path)
    return tmp_path / SHARD


def read_by_tensorflow(tf: Any, shard: Path) -> list[tuple[str, int, bytes]]:
    """Every record; TensorFlow verifies both checksums of each."""
    features = {
        "image/filename": tf.io.FixedLenFeature((), tf.string),
        "image/class/label": tf.io.FixedLenFeature((), tf.int64),
        "image/encoded": tf.io.FixedLenFeature((), tf.string),
    }
    found = (tf.io.parse_single_example(record, features) for record in tf.data.TFRecordDataset(str(shard)))
    return [tuple(one[name].numpy() for name in features) for one in found]


def test_tensorflow_reads_every_record(tf: Any, items: list[Item], shard: Path) -> None:
    expected = [((item.key + item.suffix).encode(), item.label, item.data) for item in items]
    assert read_by_tensorflow(tf, shard) == expected


def test_an_example_is_that_of_tensorflow(tf: Any, items: list[Item]) -> None:
    for item in items:
        values = {
            "image/class/label": tf.train.Feature(int64_list=tf.train.Int64List(value=[item.label])),
            "image/encoded": tf.train.Feature(bytes_list=tf.train.BytesList(value=[item.data])),
            "image/filename": tf.train.Feature(bytes_list=tf.train.BytesList(value=[f"{item.key}.jpg".encode()])),
        }
        theirs = tf.train.Example(features=tf.train.Features(feature=values))
        assert tf.train.Example.FromString(example(item)) == theirs
        assert example(item) == theirs.SerializeToString(deterministic=True)


def test_images_in_examples_with_other_features_are_found(tf: Any) -> None:
    values = {
        "a": tf.train.Feature(float_list=tf.train.FloatList(value=[1.5, 2.5])),
        "image/encoded": tf.train.Feature(bytes_list=tf.train.BytesList(value=[b"a JPEG"])),
        "image/height": tf.train.Feature(int64_list=tf.train.Int64List(value=[480, -1])),
        "none": tf.train.Feature(),
    }
    written = tf.train.Example(features=tf.train.Features(feature=values)).SerializeToString()
    assert image_in(memoryview(written)) == b"a JPEG"
    del values["image/encoded"]
    without = tf.train.Example(features=tf.train.Features(feature=values)).SerializeToString()
    with pytest.raises(ValueError, match="no image/encoded"):
        image_in(memoryview(without))


def test_shards_that_tensorflow_writes_are_read(tf: Any, items: list[Item], tmp_path: Path) -> None:
    with tf.io.TFRecordWriter(str(tmp_path / SHARD)) as writer:
        for item in items:
            writer.write(example(item))
    reader = TfRecord().reader([tmp_path], len(items))
    assert [reader(number) for number in range(len(items))] == [item.data for item in items]


@pytest.mark.parametrize("place", [3, 9, 40, -100, -2], ids=["length", "its checksum", "example", "image", "checksum"])
def test_a_flipped_bit_is_found_by_both(place: int, tf: Any, items: list[Item], shard: Path) -> None:
    data = bytearray(shard.read_bytes())
    data[place] ^= 4
    shard.write_bytes(data)
    with pytest.raises(tf.errors.DataLossError):
        read_by_tensorflow(tf, shard)
    reader = TfRecord().reader([shard.parent], len(items))
    with pytest.raises(OSError, match=f"^{shard.parent}: sample . cannot be read: a checksum does not match; "):
        [reader(number) for number in range(len(items))]


def test_a_shard_that_ends_early_is_one_line(items: list[Item], shard: Path) -> None:
    whole = shard.read_bytes()
    sizes = [16 + len(example(item)) for item in items]
    for size, said in (
        (len(whole) - 1, "truncated at"),
        (sizes[0] + 6, "a checksum does not match"),
        (sum(sizes[:-1]), "it has 7 records"),
        (0, "it has 0 records"),
    ):
        shard.write_bytes(whole[:size])
        with pytest.raises(OSError, match=f"sample 7 cannot be read: {said}") as caught:
            TfRecord().reader([shard.parent], len(items))(7)
        assert "\n" not in str(caught.value)


def test_a_writer_without_room_is_one_line_and_is_continued(photos: Path, tmp_path: Path) -> None:
    samples = samples_of(photos)
    with (
        file_size_limited(1 << 12),
        pytest.raises(MissingError, match=r"^format tfrecord: cannot write to .*too large"),
    ):
        written_copy(samples, "tfrecord", TfRecord(), cache_dir=tmp_path)
    copy = written_copy(samples, "tfrecord", TfRecord(), cache_dir=tmp_path)
    reader = copy.reader(TfRecord())
    assert [reader(number) for number in range(len(samples))] == [Path(path).read_bytes() for path, _ in samples]


def test_a_full_disk_is_named_as_one(tmp_path: Path) -> None:
    assert error_of_full_disk(TfRecord, tmp_path) == "ENOSPC"
