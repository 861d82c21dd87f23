"""The user's own training loop, which a profile records and no suite can name."""

from __future__ import annotations

from typing import ClassVar

from loaderbench.consumers.kind import ConsumerKind


class Loop(ConsumerKind):
    """Texts for verdict and report; never instantiated here."""

    who: ClassVar[str] = "training step"
    why_not_replayed: ClassVar[str] = "the loop's own time between batches is known"
    of_loop: ClassVar[bool] = True
