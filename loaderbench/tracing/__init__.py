"""Times the stages inside a `DataLoader`'s workers, with nothing of the user's or of torch changed."""

from loaderbench.tracing.cost import tracing_s_per_sample
from loaderbench.tracing.loader import LoaderTrace, is_loader
from loaderbench.tracing.reading import Mark, Slow, Traced
from loaderbench.tracing.views import NoViewError

__all__ = ["LoaderTrace", "Mark", "NoViewError", "Slow", "Traced", "is_loader", "tracing_s_per_sample"]
