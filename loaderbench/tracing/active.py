"""The tracer of this process, where marked stages find it: in a worker always, else while a batch is made."""

from __future__ import annotations

from loaderbench.tracing.tracer import Tracer

tracer: Tracer | None = None
