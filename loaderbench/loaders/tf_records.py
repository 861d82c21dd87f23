"""The backend `tf_records`: tf.data reads TFRecord shards sequentially, and decodes images in C++ threads."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, NamedTuple

from loaderbench.formats import StoredCopy
from loaderbench.formats.tfrecord import ENCODED, LABEL, SHARD
from loaderbench.loaders.backend import Batches
from loaderbench.loaders.image_files import ImageFiles, copy_in, image_files
from loaderbench.loaders.shuffle_buffer import ARGUMENT, WITHOUT_EFFECT, buffer_of, without_idle_buffer
from loaderbench.loaders.tf_data import TfData, TfDataBatches
from loaderbench.loaders.tf_images import DRAWS, OPERATIONS, image_of_bytes, load_code, setup_code
from loaderbench.loaders.thread_workers import Asked, ThreadLoader
from loaderbench.loaders.written_once import written_once
from loaderbench.options import Check
from loaderbench.ranks import check_enough, rank_and_ranks
from loaderbench.records import Config

MIXED_SHARDS = 16
"""Number of shards whose reads are interleaved when samples are shuffled."""

_NEXT_SEED = 1  # offset for the buffer's seed, so it draws other numbers than the order of the shards

_WRITE = f"""\
size = -(-len(files) // {MIXED_SHARDS})
for begin in range(0, len(files), size):
    with tf.io.TFRecordWriter(f"{{part}}/{{begin:09d}}.tfrecord") as writer:
        for path, label in files[begin : begin + size]:
            features = {{
                "{ENCODED}": tf.train.Feature(
                    bytes_list=tf.train.BytesList(value=[Path(path).read_bytes()])
                ),
                "{LABEL}": tf.train.Feature(int64_list=tf.train.Int64List(value=[label])),
            }}
            writer.write(tf.train.Example(features=tf.train.Features(feature=features)).SerializeToString())
"""

_FILE = f"""\
    text, number = tf.io.FixedLenFeature((), tf.string), tf.io.FixedLenFeature((), tf.int64)
    found = tf.io.parse_single_example(record, {{"{ENCODED}": text, "{LABEL}": number}})
    file = found["{ENCODED}"]
"""

_PIPELINE = """\
class Batches:
    def __iter__(self):
        for batch in pipeline:
            yield [torch.utils.dlpack.from_dlpack(tf.experimental.dlpack.to_dlpack(part)) for part in batch]

options = tf.data.Options()
options.threading.private_threadpool_size = {threads}
options.threading.max_intra_op_parallelism = 1
records = sorted(map(str, shards.glob("*.tfrecord")))
pipeline = tf.data.Dataset.from_tensor_slices(records){drawn}
pipeline = pipeline.interleave(
    tf.data.TFRecordDataset, cycle_length={cycle}, num_parallel_calls={threads}, deterministic=True
){shuffle}
pipeline = pipeline.map(load, num_parallel_calls={threads}).batch({size}, drop_remainder={drop_last})
pipeline = pipeline.prefetch({queued}).with_options(options)
"""


class Shards(NamedTuple):
    """Shards of one rank: the path of each, the number of its first sample, and the total number of samples."""

    paths: list[str]
    begins: list[int]
    samples: int


class TfRecords(TfData):
    """tf.data over TFRecord shards: few large files, read sequentially."""

    display_name: ClassVar[str] = "tf.data with TFRecords"
    format: ClassVar[str] = "tfrecord"
    arguments: ClassVar[Mapping[str, Check]] = {
        **ThreadLoader.arguments,
        **ARGUMENT,
    }
    without_effect: ClassVar[Mapping[str, str]] = WITHOUT_EFFECT

    def normalized(self, config: Config, fixed: Mapping[str, Any]) -> Config:
        """Remove the buffer size without `shuffle`, as nothing is drawn from a buffer then."""
        return without_idle_buffer(config, fixed)

    def build(self, source: Any, arguments: Mapping[str, Any], *, seed: int) -> Batches:
        """Read the TFRecord copy of an image folder.

        Raises `TypeError` for any other source, and `ValueError` for fewer shards than ranks.
        """
        files, copy = image_files(source, "tf_records", OPERATIONS), copy_in(source, "tf_records", self.format)
        shards = shards_of_this_rank(copy)
        made = TfRecordsBatches(files, shards, self.asked(arguments, seed), buffer_of(arguments))
        return self.batches(made, arguments, shards.samples)

    def code(self, arguments: Mapping[str, Any], comments: Sequence[str]) -> list[str]:
        """Code that writes shards of the dataset's files, and a pipeline over them that yields epoch after epoch."""
        found, buffer = ThreadLoader.prefetch(self, arguments), buffer_of(arguments)
        pipeline = _PIPELINE.format(
            threads=found.workers,
            size=found.batch_size,
            queued=found.batches,
            drawn="" if buffer is None else ".shuffle(len(records))",
            cycle=1 if buffer is None else MIXED_SHARDS,
            shuffle="" if buffer is None else f".shuffle({buffer})",
            drop_last=bool(arguments.get("drop_last")),
        )
        load = load_code(arguments, "record", _FILE, f'found["{LABEL}"]')
        setup = setup_code(arguments, lists_files=False)
        return [
            setup,
            written_once(self.format, _WRITE, arguments.get("shuffle")),
            load,
            pipeline,
            "\n".join([*comments, "loader = Batches()"]),
        ]


class TfRecordsBatches(TfDataBatches):
    """Endless batches, as `[images, labels]`; without a buffer, in the order of the files.

    Order and crops depend only on the seed.
    """

    def __init__(self, files: ImageFiles, shards: Shards, asked: Asked, buffer: int | None) -> None:
        super().__init__(files, asked)
        self._shards, self._buffer = shards, buffer

    def _next(self) -> list[Any]:
        """Return the next batch. Raises `OSError`, with the path of the shard, for a record that cannot be read."""
        try:
            return super()._next()
        except self._tf.errors.OpError as error:
            raise self._shard_error(error) from None

    def _shard_error(self, error: Any) -> Exception:
        """The error for the first shard that cannot be read to its end; the same error if there is none."""
        tf = self._tf
        for path in self._shards.paths:
            try:
                for _ in tf.data.TFRecordDataset(path):
                    pass
            except tf.errors.OpError as found:
                what = found.message.partition(" [Op:")[0].rpartition("}} ")[2]
                return OSError(f"{path}: {what}; delete the copy, and a run writes it again")
        same: Exception = error
        return same

    def _next_paths(self) -> list[str]:
        """The files of the next batch; empty if a record cannot be read."""
        begin = self._taken * self._batch_size
        records = self._records().skip(begin).take(self._batch_size)
        try:
            return [self._files.samples[int(number)][0] for number, _ in records]
        except self._tf.errors.OpError:
            return []

    def _dataset(self) -> Any:
        tf = self._tf
        features = {ENCODED: tf.io.FixedLenFeature([], tf.string), LABEL: tf.io.FixedLenFeature([], tf.int64)}

        def sample(place: Any, numbered: Any) -> tuple[Any, Any]:
            found = tf.io.parse_single_example(numbered[1], features)
            draws = tf.random.stateless_uniform([DRAWS], tf.stack([tf.constant(self._seed, tf.int64), place]))
            return image_of_bytes(tf, self._files, found[ENCODED], draws), found[LABEL]

        records = self._records().enumerate()
        samples = records.map(sample, num_parallel_calls=self._count, deterministic=True)
        return samples.batch(self._batch_size).prefetch(self._queued).with_options(self._options())

    def _records(self) -> Any:
        """The number and the record of each sample. With a buffer, the reads of several shards are interleaved."""
        tf, (paths, begins, _), mixes = self._tf, self._shards, self._buffer is not None

        def records(path: Any, begin: Any) -> Any:
            numbers = tf.data.Dataset.range(begin, tf.int64.max)
            return tf.data.Dataset.zip((numbers, tf.data.TFRecordDataset(path)))

        found = tf.data.Dataset.from_tensor_slices((paths, tf.constant(begins, tf.int64)))
        if mixes:
            found = found.shuffle(len(paths), self._seed)
        cycle = min(MIXED_SHARDS, len(paths)) if mixes else 1
        found = found.interleave(records, cycle, num_parallel_calls=min(self._count, cycle), deterministic=True)
        if mixes:
            found = found.shuffle(self._buffer, self._seed + _NEXT_SEED)
        return found.repeat()


def shards_of_this_rank(copy: StoredCopy) -> Shards:
    """All shards, or those of this rank in a process group. Raises `ValueError` if it has none."""
    rank, ranks = rank_and_ranks()
    begins = [*range(0, copy.about.samples, copy.part_samples)]
    check_enough(len(begins), "shard", ranks)
    own, paths = begins[rank::ranks], copy.parts[rank::ranks]
    return Shards([str(path / SHARD) for path in paths], own, sum(copy.part_sizes[rank::ranks]))
