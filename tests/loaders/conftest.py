"""What all tests of loaders have in common."""

from dali_pipelines import no_pipeline_is_left  # noqa: F401 - used by every file
