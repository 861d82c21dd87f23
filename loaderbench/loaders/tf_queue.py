"""The backend `tf_queue`: the input pipeline of TensorFlow 1, in which Python threads fill a queue of samples."""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from itertools import chain, repeat
from typing import Any, ClassVar, NamedTuple

from loaderbench.loaders.backend import Batches, Prefetch
from loaderbench.loaders.image_files import ImageFiles, image_files
from loaderbench.loaders.tf_images import (
    DRAWS,
    INSTALL,
    OPERATIONS,
    code_of_files,
    image_of,
    named,
    tensorflow,
    without_warnings,
)
from loaderbench.loaders.thread_workers import Asked, ThreadLoader, batches_begun
from loaderbench.loaders.torch_loader import endless_sampler
from loaderbench.ranks import rank_and_ranks

GRACE_S = 60.0
"""Time limit for the file that a thread is reading when all threads are asked to stop."""

NUMBERS = 1_024
"""Number of sample indices that wait for a thread. A thread that finds none would leave its image to another thread."""

_READERS = "batches"
"""Name of the operation whose threads read, decode and transform."""

_QUEUE = """\
v1 = tf.compat.v1

class Batches:
    def __iter__(self):
        with tf.Graph().as_default():
            columns = [[*paths], tf.constant(labels, tf.int64)]
            image = load(*v1.train.slice_input_producer(columns, num_epochs=1, shuffle={shuffle}))
            queue = dict(num_threads={threads}, capacity={queued} * {size}, allow_smaller_final_batch={short})
            batch, set_up = v1.train.batch(image, {size}, **queue), v1.local_variables_initializer()
            config = dict(inter_op_parallelism_threads=-1, intra_op_parallelism_threads=1, device_count={{"GPU": 0}})
            session, coordinator = v1.Session(config=v1.ConfigProto(**config)), v1.train.Coordinator()
            session.run(set_up)
            threads = v1.train.start_queue_runners(session, coordinator)
        try:
            while True:
                yield [torch.from_numpy(part) for part in session.run(batch)]
        except tf.errors.OutOfRangeError:
            pass  # the end of data, or of the threads
        finally:
            coordinator.request_stop()
            coordinator.join(threads)  # raises what a thread raised
            session.close()
"""


class TfQueue(ThreadLoader):
    """Queue runners of TensorFlow 1, which TensorFlow calls deprecated: new pipelines use tf.data."""

    display_name: ClassVar[str] = "TensorFlow 1 queues"
    needs: ClassVar[str] = "tensorflow"
    install: ClassVar[str] = INSTALL
    decodes: ClassVar[bool] = True

    def prefetch(self, arguments: Mapping[str, Any]) -> Prefetch:
        """Prefetch more than the size of the queue: each thread holds a sample that does not fit into the queue."""
        found = super().prefetch(arguments)
        return replace(found, queued=self.queued(arguments) + batches_begun(found))

    def build(self, source: Any, arguments: Mapping[str, Any], *, seed: int) -> Batches:
        """Read a folder of images. Raises `TypeError` for any other source, `ValueError` for fewer files than ranks."""
        files = image_files(source, "tf_queue", OPERATIONS)
        endless_sampler(source, arguments, seed)  # raises the same errors as for torch
        files = _rank_files(files)
        made = TfQueueBatches(files, self.asked(arguments, seed))
        return self.batches(made, arguments, len(files.samples))

    def code(self, arguments: Mapping[str, Any], comments: Sequence[str]) -> list[str]:
        """Code of queues that yield epoch after epoch."""
        found = super().prefetch(arguments)
        queue = _QUEUE.format(
            threads=found.workers,
            size=found.batch_size,
            queued=found.batches,
            shuffle=bool(arguments.get("shuffle")),
            short=not arguments.get("drop_last"),
        )
        return [code_of_files(arguments), queue, "\n".join([*comments, "loader = Batches()"])]


def _rank_files(files: ImageFiles) -> ImageFiles:
    """The part of this rank in a process group: the same samples in all epochs."""
    rank, ranks = rank_and_ranks()
    return files._replace(samples=files.samples[rank::ranks])


class _Pipeline(NamedTuple):
    """Operations of a graph: images, labels and numbers of a batch, and paths of the images in progress."""

    graph: Any
    batch: list[Any]
    under_way: Any
    set_up: Any


class TfQueueBatches:
    """Batches as `[images, labels]`, endless or for a number of epochs, of which the last batch can be smaller.

    With `shuffle`, each epoch has a different order. An exception in any thread ends all threads, and is raised here.
    """

    def __init__(self, files: ImageFiles, asked: Asked, epochs: int | None = None) -> None:
        self._files, self._epochs = files, epochs
        self._batch_size, self._count, self._queued, self._seed, self._shuffle = asked
        self._tf = tensorflow()
        self._session: Any = None
        self._coordinator: Any = None
        self._runners: list[Any] = []

    def __iter__(self) -> Iterator[list[Any]]:
        import torch

        self.end()
        with without_warnings(self._tf):
            pipeline = self._pipeline()
            self._start(pipeline)
        session, batches = self._session, self._fetch(pipeline)
        if not self._shuffle and self._count > 1:
            numbers = range(len(self._files.samples))
            epochs = repeat(numbers) if self._epochs is None else repeat(numbers, self._epochs)
            batches = in_order(batches, chain.from_iterable(epochs), self._batch_size)
        for images, labels, _ in batches:
            yield [torch.from_numpy(images), torch.from_numpy(labels)]
            if self._session is not session:  # `end` was called
                return

    def _pipeline(self) -> _Pipeline:
        tf, v1 = self._tf, self._tf.compat.v1
        paths, labels = zip(*self._files.samples, strict=True)
        graph = tf.Graph()
        with graph.as_default():
            v1.set_random_seed(self._seed)
            path, label, number = v1.train.slice_input_producer(
                [tf.constant(paths), tf.constant(labels, tf.int64), tf.range(len(paths))],
                num_epochs=self._epochs,
                shuffle=self._shuffle,
                seed=self._seed,
                capacity=NUMBERS,
            )
            image, under_way = self._image(path)
            batch = v1.train.batch(
                [image, label, number],
                self._batch_size,
                num_threads=self._count,
                capacity=self._queued * self._batch_size,
                allow_smaller_final_batch=self._epochs is not None,
                name=_READERS,
            )
            return _Pipeline(graph, batch, under_way, v1.local_variables_initializer())

    def _image(self, path: Any) -> tuple[Any, Any]:
        """Return an image, and the paths of all images in progress: an error does not say which image caused it."""
        tf = self._tf
        under_way = tf.lookup.experimental.MutableHashTable(tf.string, tf.int64, default_value=0)
        with tf.control_dependencies([under_way.insert(path[None], tf.constant([1], tf.int64))]):
            path = tf.identity(path)
        image = image_of(tf, self._files, path, tf.random.uniform([DRAWS]))
        with tf.control_dependencies([image]), tf.control_dependencies([under_way.remove(path[None])]):
            image = tf.identity(image)
        return image, under_way.export()[0]

    def _start(self, pipeline: _Pipeline) -> None:
        """Start the threads. Each runs its operations itself, in place of TensorFlow's pool."""
        v1 = self._tf.compat.v1
        config = v1.ConfigProto(
            inter_op_parallelism_threads=-1, intra_op_parallelism_threads=1, device_count={"GPU": 0}
        )
        self._session = v1.Session(graph=pipeline.graph, config=config)
        self._session.run(pipeline.set_up)
        self._coordinator = v1.train.Coordinator()
        with pipeline.graph.as_default():
            self._runners = v1.train.start_queue_runners(self._session, self._coordinator)

    def _fetch(self, pipeline: _Pipeline) -> Iterator[list[Any]]:
        """Yield batches in the order of the queue."""
        errors = self._tf.errors
        fetch = self._session.make_callable(pipeline.batch)
        while True:
            try:
                fetched = fetch()
            except (errors.OutOfRangeError, errors.CancelledError):  # end of data, or after an error
                self._stop(pipeline)
                return
            yield fetched

    def _stop(self, pipeline: _Pipeline) -> None:
        """End the threads, and raise the exception of a thread, if any."""
        session = self._session
        try:
            self._join()
        except self._tf.errors.OpError as error:
            paths = [path.decode() for path in session.run(pipeline.under_way)]
            raise named(self._tf, error, paths) from None
        finally:
            self._session = None
            session.close()

    def _join(self) -> None:
        runners, self._runners = self._runners, []
        self._coordinator.request_stop()
        self._coordinator.join(runners, stop_grace_period_secs=GRACE_S)

    def threads(self) -> list[int]:
        """Kernel IDs of the threads that load images."""
        named = [thread for thread in self._runners if f"-{_READERS}/" in thread.name and thread.is_alive()]
        return [thread.native_id for thread in named if not thread.name.endswith("close_on_stop")]

    def end(self) -> None:
        """Ask all threads to stop, and wait for them. Their exceptions no longer matter."""
        session, self._session = self._session, None
        if session is None:
            return
        with suppress(self._tf.errors.OpError):
            self._join()
        session.close()


def in_order(batches: Iterable[list[Any]], numbers: Iterable[int], batch_size: int) -> Iterator[list[Any]]:
    """Sort samples into the order of these numbers, since reader threads overtake each other.

    The last part of a batch holds the numbers. Parts are NumPy arrays, which are copied in this thread only.
    """
    waiting: defaultdict[int, deque[tuple[Any, ...]]] = defaultdict(deque)
    left, batch = iter(numbers), list[tuple[Any, ...]]()
    number = next(left, None)
    for parts in batches:
        for row in zip(*parts, strict=True):
            waiting[int(row[-1])].append(row)
        while number is not None and waiting[number]:
            batch.append(waiting[number].popleft())
            number = next(left, None)
            if len(batch) == batch_size or number is None:
                yield _stacked(batch)
                batch = []


def _stacked(samples: Iterable[tuple[Any, ...]]) -> list[Any]:
    import numpy as np

    return [np.stack(column) for column in zip(*samples, strict=True)]
