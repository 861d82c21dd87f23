"""A training step on a CUDA device, and the wait it is exposed to."""

from __future__ import annotations

import warnings
from collections import deque
from typing import Any

import torch

from loaderbench.records import Gpu, Reasons


def visible_gpus() -> tuple[tuple[Gpu, ...], Reasons]:
    """Devices in CUDA's order, with `CUDA_VISIBLE_DEVICES` honoured, or why there is none. Initialises CUDA."""
    with warnings.catch_warnings(record=True) as said:  # such as a driver that is too old
        warnings.simplefilter("always")
        available = torch.cuda.is_available()
    if not available:
        why = str(said[-1].message).splitlines()[0] if said else "CUDA finds no usable device"
        return (), {"gpus": "torch was built without CUDA" if torch.version.cuda is None else why}
    gpus = []
    for index in range(torch.cuda.device_count()):
        found = torch.cuda.get_device_properties(index)
        gpus.append(Gpu(index, str(getattr(found, "uuid", "")), found.name, int(found.total_memory)))
    return tuple(gpus), {}


class CudaWaitClock:
    """Waits by events on the current stream, around `next()`.

    The device reaches the first event when it has drained, and the second as soon as the host, given the batch, issues
    it. The time between is about max(0, batch ready - device drained), which leaves out work still queued. Events are
    read with `query()` and reused; only the last reading synchronizes. After an error of the device, which CUDA then
    repeats at every call, no further wait is reported: it is the loop's to raise, and `waits_s`'s.
    Source: CUDA Runtime API, "Event Management" (`cudaEventElapsedTime`).
    """

    def __init__(self) -> None:
        self._error: RuntimeError | None = None
        self._free: list[Any] = []
        self._pending: deque[tuple[Any, Any]] = deque()
        self._asked: Any = None
        self._waits_s: list[float] = []

    def ask(self) -> None:
        """Mark the moment at which the device has nothing left to do."""
        try:
            self._asked = self._event()
        except RuntimeError as error:
            self._error = error

    def got(self) -> None:
        """Mark the moment at which it can be given more."""
        try:
            if self._error is None:
                self._pending.append((self._asked, self._event()))
        except RuntimeError as error:
            self._error = error
        self._read_reported()

    def take_s(self) -> list[float]:
        """Return the waits that the device has reported since the last call, in order, in seconds; never blocks."""
        self._read_reported()
        reported, self._waits_s = self._waits_s, []
        return reported

    def waits_s(self) -> list[float]:
        """Return the wait of every batch so far, in seconds; blocks until the device is done.

        Raises the `RuntimeError` of the device, if there was one.
        """
        if self._error is not None:
            raise self._error
        while self._pending:
            self._read()
        return self._waits_s

    def _read_reported(self) -> None:
        try:
            while self._error is None and self._pending and self._pending[0][1].query():
                self._read()
        except RuntimeError as error:
            self._error = error

    def _event(self) -> Any:
        event = self._free.pop() if self._free else torch.cuda.Event(enable_timing=True)  # type: ignore[no-untyped-call]
        event.record()
        return event

    def _read(self) -> None:
        asked, got = self._pending[0]
        got.synchronize()  # returns at once but for `waits_s`
        self._waits_s.append(asked.elapsed_time(got) / 1000)
        self._pending.popleft()
        self._free += [asked, got]


class RunAhead:
    """Keeps the host at most so many steps ahead of the device, as a loop does that reads its loss.

    Without a limit hundreds of short steps are queued, and the rate is that of queueing them.
    """

    def __init__(self, steps: int = 2) -> None:
        self._steps, self._queued = steps, deque[Any]()

    def queued(self) -> None:
        """Note that a step is queued, and wait for the one that is too far back."""
        if len(self._queued) > self._steps:
            event = self._queued.popleft()
            event.synchronize()
        else:
            event = torch.cuda.Event()  # type: ignore[no-untyped-call]
        event.record()
        self._queued.append(event)


def native_precision(device: torch.device) -> torch.dtype:
    """The 16-bit type that the device computes in; older ones than NVIDIA's Ampere only emulate bfloat16, slowly."""
    native = device.type != "cuda" or torch.cuda.is_bf16_supported(including_emulation=False)
    return torch.bfloat16 if native else torch.float16


class TrainingStep:
    """Forward, backward and update of a torchvision classifier, in mixed precision.

    Labels beyond the classes of the model are wrapped: what they say does not matter here.
    """

    def __init__(self, model: str, device: str = "cuda") -> None:
        import torchvision

        self._device = torch.device(device)
        net = torchvision.models.get_model(model, weights=None).to(self._device, memory_format=torch.channels_last)
        self._model: torch.nn.Module = net.train()
        self._optimizer = torch.optim.SGD(net.parameters(), lr=0.01, momentum=0.9)
        self._loss = torch.nn.CrossEntropyLoss()
        self._mean, self._std = (
            torch.tensor(values, device=self._device).view(3, 1, 1) * 255
            for values in ((0.485, 0.456, 0.406), (0.229, 0.224, 0.225))  # torchvision's, as the recipes have them
        )
        self._precision = native_precision(self._device)
        self._run_ahead = RunAhead() if self._device.type == "cuda" else None
        self.wait_clock = CudaWaitClock()

    def consume(self, batch: Any, samples: int) -> None:
        """Queue the copy and the step on the device."""
        images, labels = (part.to(self._device, non_blocking=True) for part in batch[:2])
        if images.dtype == torch.uint8:  # left so by the workers
            images = (images.float() - self._mean) / self._std
        images = images.contiguous(memory_format=torch.channels_last)
        with torch.autocast(self._device.type, dtype=self._precision):
            scores = self._model(images)
            loss = self._loss(scores, labels % scores.shape[1])
        self._optimizer.zero_grad(set_to_none=True)
        loss.backward()
        self._optimizer.step()
        if self._run_ahead is not None:
            self._run_ahead.queued()
