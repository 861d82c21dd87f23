"""The backend `tf_data`: a pipeline of TensorFlow's tf.data reads, decodes and transforms images in C++ threads."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, ClassVar

from loaderbench.loaders.backend import Batches, Prefetch
from loaderbench.loaders.image_files import ImageFiles, image_files
from loaderbench.loaders.tf_images import DRAWS, INSTALL, OPERATIONS, code_of_files, image_of, named, tensorflow
from loaderbench.loaders.thread_workers import Asked, ThreadLoader, batches_begun, threads_started
from loaderbench.loaders.torch_loader import endless_sampler
from loaderbench.ranks import rank_and_ranks

_PIPELINE = """\
class Batches:
    def __iter__(self):
        for batch in pipeline:
            yield [torch.utils.dlpack.from_dlpack(tf.experimental.dlpack.to_dlpack(part)) for part in batch]

    def __len__(self):
        return len(pipeline)

options = tf.data.Options()
options.threading.private_threadpool_size = {threads}
options.threading.max_intra_op_parallelism = 1
pipeline = tf.data.Dataset.from_tensor_slices(([*paths], tf.constant(labels, tf.int64))){shuffle}
pipeline = pipeline.map(load, num_parallel_calls={threads}).batch({size}, drop_remainder={drop_last})
pipeline = pipeline.prefetch({queued}).with_options(options)
"""


class TfData(ThreadLoader):
    """TensorFlow's tf.data: its threads do not hold the GIL. For a random crop of a JPEG, only the crop is decoded."""

    display_name: ClassVar[str] = "tf.data"
    needs: ClassVar[str] = "tensorflow"
    install: ClassVar[str] = INSTALL
    decodes: ClassVar[bool] = True

    def prefetch(self, arguments: Mapping[str, Any]) -> Prefetch:
        """Prefetch more than the `queued` finished batches: about two more, or as many as threads can start at once."""
        found = super().prefetch(arguments)
        return replace(found, queued=self.queued(arguments) + batches_begun(found) + 1)

    def build(self, source: Any, arguments: Mapping[str, Any], *, seed: int) -> Batches:
        """Read a folder of images. Raises `TypeError` for any other source."""
        files = image_files(source, "tf_data", OPERATIONS)
        endless_sampler(source, arguments, seed)  # raises the same errors as for torch
        made = TfDataBatches(files, self.asked(arguments, seed))
        return self.batches(made, arguments, len(made.of_this_rank))

    def code(self, arguments: Mapping[str, Any], comments: Sequence[str]) -> list[str]:
        """Code of a pipeline that yields epoch after epoch."""
        found = super().prefetch(arguments)
        pipeline = _PIPELINE.format(
            threads=found.workers,
            size=found.batch_size,
            queued=found.batches,
            shuffle=".shuffle(len(paths))" if arguments.get("shuffle") else "",
            drop_last=bool(arguments.get("drop_last")),
        )
        return [code_of_files(arguments), pipeline, "\n".join([*comments, "loader = Batches()"])]


class TfDataBatches:
    """Endless batches, as `[images, labels]`; with `shuffle`, each epoch has a different order.

    Order and crops depend on the seed, and not on the number of threads.
    """

    def __init__(self, files: ImageFiles, asked: Asked) -> None:
        self._files = files
        self._batch_size, self._count, self._queued, self._seed, self._shuffle = asked
        self._tf = tensorflow()
        self._iterator: Any = None
        self._threads: list[int] = []
        self._taken = 0  # batches taken

    def __iter__(self) -> Iterator[list[Any]]:
        self.end()
        self._begin()
        while self._iterator is not None:
            yield self._next()

    def _begin(self) -> None:
        """Start the pipeline. The threads of its private pool are the first that its iterator starts."""
        dataset = self._dataset()
        with threads_started() as started:
            self._iterator = iter(dataset)
        self._threads, self._taken = started[: self._count], 0

    def _next(self) -> list[Any]:
        try:
            batch = next(self._iterator)
        except self._tf.errors.OpError as error:
            found = named(self._tf, error, self._next_paths())
        else:
            self._taken += 1
            return [self._of_torch(part) for part in batch]
        self.end()
        raise found

    def _of_torch(self, part: Any) -> Any:
        """A torch tensor in the same memory, which TensorFlow frees when torch frees the tensor."""
        from torch.utils.dlpack import from_dlpack

        return from_dlpack(self._tf.experimental.dlpack.to_dlpack(part))

    def _next_paths(self) -> list[str]:
        """The files of the next batch."""
        numbers = self._numbers().skip(self._taken * self._batch_size).take(self._batch_size)
        return [self._files.samples[int(number)][0] for number in numbers]

    def _dataset(self) -> Any:
        tf = self._tf
        paths, labels = (tf.constant(column) for column in zip(*self._files.samples, strict=True))
        labels = tf.cast(labels, tf.int64)

        def sample(place: Any, number: Any) -> tuple[Any, Any]:
            draws = tf.random.stateless_uniform([DRAWS], tf.stack([tf.constant(self._seed, tf.int64), place]))
            return image_of(tf, self._files, tf.gather(paths, number), draws), tf.gather(labels, number)

        samples = self._numbers().enumerate().map(sample, num_parallel_calls=self._count, deterministic=True)
        return samples.batch(self._batch_size).prefetch(self._queued).with_options(self._options())

    @property
    def of_this_rank(self) -> range:
        """Positions in the order of an epoch that this rank loads: all, without a process group."""
        rank, ranks = rank_and_ranks()
        return range(rank, len(self._files.samples), ranks)

    def _numbers(self) -> Any:
        """Sample numbers, epoch after epoch. TensorFlow draws them, because numbers from Python cost page faults."""
        found = self._tf.data.Dataset.range(len(self._files.samples))
        if self._shuffle:
            found = found.shuffle(len(self._files.samples), self._seed)
        return found.shard(self.of_this_rank.step, self.of_this_rank.start).repeat()

    def _options(self) -> Any:
        """Options that limit the pipeline to the requested number of threads."""
        options = self._tf.data.Options()
        options.threading.private_threadpool_size = self._count
        options.threading.max_intra_op_parallelism = 1
        options.autotune.enabled = False
        return options

    def threads(self) -> list[int]:
        """Kernel IDs of the threads in the pipeline's private pool."""
        return self._threads

    def end(self) -> None:
        """End the threads: only the destructor of the iterator does that."""
        self._iterator, self._threads = None, []
