"""What eats the batches: nothing, an emulated accelerator, a training step, or the user's own step."""

from loaderbench.consumers.base import Consumer, WaitClock
from loaderbench.consumers.make import make_consumer

__all__ = ["Consumer", "WaitClock", "make_consumer"]
