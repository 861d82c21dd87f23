"""The data model of a suite. Validation is strict: a string is not a number, and an unknown key is an error."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Annotated, Any, Literal, Union

from pydantic import BeforeValidator, Field, PlainValidator, create_model, model_validator

from loaderbench.consumers import AUTO, CONSUMER_KINDS
from loaderbench.datasets import DATASET_KINDS, DEFAULT_KIND, DatasetKind
from loaderbench.loaders import LOADER_BACKENDS, loader_axes, prefetch_of
from loaderbench.options import Amount, Count, Part, Seed, within_limits
from loaderbench.ranks import process_count
from loaderbench.records import Config, Scalar

_NUMBER = r"\d+(?:\.\d+)?"
_UNITS = rf"(?:({_NUMBER})h)?(?:({_NUMBER})m(?:in)?)?(?:({_NUMBER})s)?"


def parse_duration_s(value: Any) -> Any:
    """Seconds of `10m`, `90s`, `1h30m` or a plain number; other types are returned for pydantic to reject.

    Raises `ValueError` for any other text, and for a number that cannot be saved in a run.
    """
    if isinstance(value, str) and re.fullmatch(_NUMBER, value.strip()):  # a number from a flag
        return within_limits(float(value))
    if isinstance(value, str) and (match := re.fullmatch(_UNITS, value.strip())) and value.strip():
        hours, minutes, seconds = (float(found or 0) for found in match.groups())
        return within_limits(hours * 3600 + minutes * 60 + seconds)
    if isinstance(value, str):
        raise ValueError(f"expected a duration such as 90s, 10m or 1h30m, or seconds, got {value!r}")
    return value


def _plain(value: Any) -> Any:
    """Check a scalar in one step, since a union would report an error for each of its branches."""
    if value is None or isinstance(value, bool | int | float | str):
        return value
    raise ValueError(f"expected a single value, got {'a list' if isinstance(value, list) else 'a mapping'}")


_Written = Annotated[str, Field(pattern=f"^(?=.*\\d)({_NUMBER}|{_UNITS})$")]
Duration = Annotated[Amount, BeforeValidator(parse_duration_s, json_schema_input_type=Amount | _Written)]
Plain = Annotated[Scalar, PlainValidator(_plain, json_schema_input_type=Scalar)]


class ConsumerPart(Part):
    """The fields common to all kinds of consumer."""

    kind: str = AUTO


def _consumer() -> type[ConsumerPart]:
    """Make the model of the section `consumer` from the registered kinds and their options."""
    kinds: Any = Literal[(AUTO, *CONSUMER_KINDS)]
    options: dict[str, Any] = {
        name: (option.annotation, option)
        for kind in CONSUMER_KINDS.values()
        for name, option in kind.model_fields.items()
    }
    description = "What consumes the batches, and the options of its kind."
    return create_model(
        "Consumer", __base__=ConsumerPart, __doc__=description, __module__=__name__, kind=(kinds, AUTO), **options
    )


if TYPE_CHECKING:
    Consumer = ConsumerPart
    Dataset = DatasetKind
else:
    Consumer = _consumer()
    Dataset = Annotated[Union[tuple(DATASET_KINDS.values())], Field(discriminator="kind")]  # noqa: UP007


Strategy = Literal["grid", "adaptive"]


class Measure(Part):
    """How long and how often to measure.

    `seconds` is the minimum steady state of a trial, `timeout_s` its time limit.

    `strategy`: `grid` measures every configuration in every round. `adaptive` drops those that can no longer be the
    best, and with a `budget` measures as many as fit in it.

    `verify`: fixes are tried, and measured against the unmodified configuration. `deterministic`: random draws do not
    depend on the number of workers, and torch uses deterministic algorithms.
    """

    rounds: Count = 3
    seconds: Amount = 3.0
    cache: Literal["warm", "cold"] = "warm"
    strategy: Strategy = "grid"
    budget: Duration | None = None
    timeout_s: Amount = 300.0
    verify: bool = True
    seed: Seed = 0
    deterministic: bool = False


class Suite(Part):
    """A suite file: what to load, what to vary, what consumes the batches, and how to measure."""

    # `axes.py` checks the values of `loader`, `sweep` and `baseline`

    name: Annotated[str, Field(min_length=1)] = "suite"
    dataset: Dataset = DATASET_KINDS[DEFAULT_KIND].model_construct()
    loader: dict[str, Plain] = {}
    sweep: dict[str, Any] = {}
    baseline: dict[str, Plain] = {}
    consumer: Consumer = Consumer()
    measure: Measure = Measure()

    def option_values(self, option: str) -> list[Any]:
        """All values that a dataset option takes: in the sweep or under `dataset`, and in the baseline."""
        swept = self.sweep.get(option, getattr(self.dataset, option))
        values = swept if isinstance(swept, list) else [swept]
        return [*values, self.baseline[option]] if option in self.baseline else values

    @property
    def options(self) -> dict[str, list[Any]]:
        """All values of each dataset option that can be an axis."""
        return {option: self.option_values(option) for option in self.dataset.option_axes()}

    @model_validator(mode="before")
    @classmethod
    def _default_kind(cls, data: Any) -> Any:
        dataset = data.get("dataset") if isinstance(data, dict) else None
        if isinstance(dataset, dict) and "kind" not in dataset:
            return {**data, "dataset": {"kind": DEFAULT_KIND, **dataset}}
        return data


def suite_schema() -> dict[str, Any]:
    """The JSON Schema of a suite, for editors: its structure, and the names of arguments.

    Describes what `load_suite` accepts, as far as a schema can; a section can be empty.
    """
    found = Suite.model_json_schema()
    found["properties"]["loader"]["propertyNames"] = {"enum": [*loader_axes(LOADER_BACKENDS.values())]}
    found["$defs"]["Consumer"]["not"] = {
        "properties": {"demand": {"type": "number"}, "accelerator": {"type": "string"}},
        "required": ["demand", "accelerator"],
    }
    found["properties"] = {name: _or_empty(section) for name, section in found["properties"].items()}
    return found


def _or_empty(section: dict[str, Any]) -> dict[str, Any]:
    return {"default": section.pop("default", None), "anyOf": [section, {"type": "null"}]}


def batch_bytes(suite: Suite, config: Config) -> int | None:
    """Bytes of one batch; `None` if unknown."""
    found = prefetch_of(suite.loader, config)
    each = suite.dataset.with_axes(config).sample_bytes()
    return None if each is None or found.batch_size is None else found.batch_size * each


def prefetched_bytes(suite: Suite, config: Config) -> int | None:
    """Bytes of all batches that are ready or in flight, in all ranks; `None` if their size or count is unknown.

    0 if the consumer's own process loads, because nothing is shared then.
    """
    found = prefetch_of(suite.loader, config)
    if not found.shares_memory:
        return 0
    each = batch_bytes(suite, config)
    return None if each is None or found.batches is None else found.batches * each * process_count(config)
