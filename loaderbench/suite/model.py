"""The shape of a suite. Strict: a text is no number, an unknown key is an error."""

from __future__ import annotations

import re
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, PlainValidator, model_validator

from loaderbench.records import Scalar

_TARGET = re.compile(r"[A-Za-z_][\w.]*:[A-Za-z_][\w.]*")
_NUMBER = r"\d+(?:\.\d+)?"
_UNITS = rf"(?:({_NUMBER})h)?(?:({_NUMBER})m(?:in)?)?(?:({_NUMBER})s)?"


def parse_duration_s(value: Any) -> Any:
    """Seconds of `10m`, `90s`, `1h30m` or a plain number; anything else is returned for pydantic to refuse."""
    if isinstance(value, str) and (match := re.fullmatch(_UNITS, value.strip())) and value.strip():
        hours, minutes, seconds = (float(found or 0) for found in match.groups())
        return hours * 3600 + minutes * 60 + seconds
    if isinstance(value, str):
        raise ValueError(f"{value!r} is not a duration such as 90s, 10m or 1h30m")
    return value


def _target_name(value: str) -> str:
    if not _TARGET.fullmatch(value):
        raise ValueError(f"{value!r} is not of the form package.module:name")
    return value


def _plain(value: Any) -> Any:
    """Checked at once and not branch by branch of the union, whose every branch would be a finding of its own."""
    if value is None or isinstance(value, bool | int | float | str):
        return value
    raise ValueError(f"{'a list' if isinstance(value, list) else 'a mapping'} is not a plain value")


Count = Annotated[int, Field(gt=0)]
Amount = Annotated[float, Field(gt=0, allow_inf_nan=False)]
_Written = Annotated[str, Field(pattern=f"^(?=.*\\d)({_UNITS})$")]
Duration = Annotated[Amount, BeforeValidator(parse_duration_s, json_schema_input_type=Amount | _Written)]
Plain = Annotated[Scalar, PlainValidator(_plain, json_schema_input_type=Scalar)]
Seed = Annotated[int, Field(ge=0, le=2**32)]  # torch takes 64 bits, and each round adds one
TargetName = Annotated[str, AfterValidator(_target_name)]


class _Part(BaseModel):
    model_config = ConfigDict(strict=True, extra="forbid", frozen=True)


class Generate(_Part):
    """The photo-like JPEGs that are made when no folder is given."""

    images: Annotated[int, Field(ge=2, le=1_000_000)] = 512
    like: Literal["imagenet"] = "imagenet"
    seed: Seed = 0


class ImageFolder(_Part):
    """A folder that `torchvision.datasets.ImageFolder` reads: `root/class/name.jpg`.

    `normalize: device` leaves batches uint8, `presize` reads copies whose shorter side has so many pixels,
    `image_cache` keeps decoded images, and `skip_bad` leaves out files that cannot be decoded.
    """

    kind: Literal["image_folder"] = "image_folder"
    root: str | None = None
    generate: Generate = Generate()
    sample: Count | None = 20_000
    decoder: str = "pillow"
    transform: str = "imagenet_train"
    normalize: str = "worker"
    presize: int | None = None
    image_cache: str | None = None
    skip_bad: bool = False


class Target(_Part):
    """What the user already has: a callable that returns a `Dataset`, a loader or any iterable."""

    kind: Literal["target"]
    target: TargetName
    args: dict[str, Any] = {}


class Consumer(_Part):
    """What eats the batches. `demand` is samples/s, for `emulated`."""

    kind: Literal["auto", "none", "emulated", "model", "target"] = "auto"
    demand: Amount = 1000.0
    model: str = "resnet50"
    target: TargetName | None = None
    args: dict[str, Any] = {}

    @model_validator(mode="after")
    def _target_given(self) -> Consumer:
        if self.kind == "target" and self.target is None:
            raise ValueError("`kind: target` needs `target: package.module:name`")
        return self


class Measure(_Part):
    """How long and how often. `seconds` is the least steady state of a trial, `timeout_s` the most a trial may take.

    `verify`: remedies are tried, and measured beside what they are to improve.
    """

    rounds: Count = 3
    seconds: Amount = 3.0
    cache: Literal["warm", "cold"] = "warm"
    strategy: Literal["grid"] = "grid"
    budget: Duration | None = None
    timeout_s: Amount = 300.0
    verify: bool = True
    seed: Seed = 0


class Suite(_Part):
    """One suite, as written. The values of `loader`, `sweep` and `baseline` are checked in `axes.py`."""

    name: Annotated[str, Field(min_length=1)] = "suite"
    dataset: Annotated[ImageFolder | Target, Field(discriminator="kind")] = ImageFolder()
    loader: dict[str, Plain] = {}
    sweep: dict[str, Any] = {}
    baseline: dict[str, Plain] = {}
    consumer: Consumer = Consumer()
    measure: Measure = Measure()

    @model_validator(mode="before")
    @classmethod
    def _default_kind(cls, data: Any) -> Any:
        dataset = data.get("dataset") if isinstance(data, dict) else None
        if isinstance(dataset, dict) and "kind" not in dataset:
            return {**data, "dataset": {"kind": "image_folder", **dataset}}
        return data
