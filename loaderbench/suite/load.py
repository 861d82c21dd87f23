"""Loads and checks a suite from its file and the command-line flags; errors are one line with their position."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from loaderbench.consumers import CONSUMER_KINDS, OptionProblem, ignored_options, option_problems
from loaderbench.datasets import DATASET_KINDS, DEFAULT_KIND, DatasetKind
from loaderbench.errors import MissingError, SuiteError, printable
from loaderbench.loaders import AXIS, LOADER_BACKENDS, backends_of
from loaderbench.suite.axes import find_problems
from loaderbench.suite.model import Suite
from loaderbench.suite.problems import Problem, problem_of
from loaderbench.suite.yaml_text import KeyPath, ParsedText, Position, TextError, parse_text

MAX_BYTES = 1_000_000
SHORTEST_LIMIT = 2.0  # multiple of the steady state: imports, the first batch and warm-up come before it
TEXT_OPTIONS = {option for kind in DATASET_KINDS.values() for option in kind.texts}
"""Options of a dataset whose values are text."""

DATA_OPTIONS = {option for kind in DATASET_KINDS.values() for option in kind.data_axes}
"""Options that choose the data: under `dataset` or an axis, and not both."""

_TEXTS: set[KeyPath] = {
    ("name",),
    *((section, option) for section in ("dataset", "sweep", "baseline") for option in TEXT_OPTIONS),
    *(("consumer", option) for kind in CONSUMER_KINDS.values() for option in kind.texts),
}
"""Options that stay text, also in a list, since a folder can be named 2024."""


@dataclass(frozen=True)
class Override:
    """A value set by a flag, and the flag as the user wrote it."""

    path: KeyPath
    value: Any
    flag: str


@dataclass(frozen=True)
class LoadedSuite:
    """A suite, its file, and the overrides set by flags; relative paths and targets are looked up in the file's folder.

    `warnings` are lines about options without effect, with their positions. `places` finds the position of a value.
    """

    suite: Suite
    file: Path
    overrides: Sequence[Override] = ()
    warnings: Sequence[str] = ()
    places: _Locator | None = None

    @property
    def folder(self) -> Path:
        """The absolute folder of the suite's file."""
        return self.file.resolve().parent

    def selected(self) -> LoadedSuite:
        """The suite without baseline values that flags leave out."""
        lists = {found.path[-1]: found.value for found in self.overrides if isinstance(found.value, list)}
        kept = {axis: value for axis, value in self.suite.baseline.items() if value in lists.get(axis, [value])}
        return replace(self, suite=self.suite.model_copy(update={"baseline": kept}))

    @contextmanager
    def saying_where(self) -> Iterator[None]:
        """Put the place of the value at fault, if known, before the message of a `MissingError`."""
        try:
            yield
        except MissingError as error:
            if self.places is None or error.value is None:
                raise
            raise MissingError(self.places.line_about(error.value, str(error))) from None


def load_suite(file: Path, overrides: Sequence[Override] = ()) -> LoadedSuite:
    """Read and check a suite, without importing anything that it names. Raises `SuiteError`."""
    try:
        parsed = parse_text(_read(file), _TEXTS, _without_effect(overrides))
    except TextError as error:
        raise SuiteError(_line(str(file), error.position, error.path, error.what)) from None
    if not isinstance(parsed.value, dict):
        raise SuiteError(f"{file}:1:1: expected a mapping of keys, got {_shape(parsed.value)}")
    of_loaders = _axes_of_loaders(parsed.value)
    _refuse_both(overrides)
    for override in overrides:
        _apply(parsed.value, override)
    _drop_axes(parsed.value, of_loaders - _axes_of_loaders(parsed.value) - {override.path for override in overrides})
    where = _Locator(str(file), parsed, {override.path: override.flag for override in overrides})
    suite = _validate(parsed.value, where, file)
    if problems := [*find_problems(suite), *_consumer_problems(suite), *_measure_problems(suite)]:
        raise SuiteError(where.first(problems))
    ignored = [where.line_of(_as_problem(found)) for found in ignored_options(suite.consumer)]
    return LoadedSuite(suite, file, tuple(overrides), tuple(ignored), where)


def kind_of_dataset(file: Path, overrides: Sequence[Override]) -> type[DatasetKind] | None:
    """The dataset kind that a suite names; `None` if it is unknown or the file cannot be parsed."""
    try:
        found = parse_text(_read(file), _TEXTS, _without_effect(overrides)).value
    except TextError:
        return None
    dataset = found.get("dataset") if isinstance(found, dict) else None
    kind = dataset.get("kind", DEFAULT_KIND) if isinstance(dataset, dict) else DEFAULT_KIND
    return DATASET_KINDS.get(kind) if isinstance(kind, str) else None


def _read(file: Path) -> str:
    try:
        if file.stat().st_size > MAX_BYTES:
            raise SuiteError(f"{file}: larger than {MAX_BYTES:,} bytes; a suite is a short text file")
        return file.read_text(encoding="utf-8-sig")
    except FileNotFoundError:
        raise SuiteError(f"{file}: no such file; `loaderbench init` writes a suite") from None
    except UnicodeDecodeError as error:
        raise SuiteError(f"{file}: not UTF-8 text (byte {error.start}); save it as UTF-8") from None
    except (OSError, ValueError) as error:
        raise SuiteError(f"{file}: cannot read: {getattr(error, 'strerror', None) or error}") from None


def _refuse_both(overrides: Sequence[Override]) -> None:
    """Raise `SuiteError` for a dataset option that one flag sets and another one varies."""
    fixed = {override.path[-1]: override.flag for override in overrides if override.path[0] == "dataset"}
    for override in overrides:
        if override.path[0] == "sweep" and override.path[-1] in fixed:
            flags = f"{fixed[override.path[-1]]} cannot be combined with {override.flag}"
            raise SuiteError(printable(f"{flags}; remove one of them"))


def _apply(data: dict[str, Any], override: Override) -> None:
    *parents, last = override.path
    for section, option in _dropped_by(override):
        if isinstance(data.get(section), dict):
            data[section].pop(option, None)
    for key in parents:
        if not isinstance(data.get(str(key)), dict):
            data[str(key)] = {}
        data = data[str(key)]
    data[str(last)] = override.value


def _dropped_by(override: Override) -> list[tuple[str, str]]:
    """Section and option of the values that an override drops: what is swept is not fixed, and vice versa."""
    instead_of = {"sweep": ["loader"], "dataset": ["sweep", "baseline"]}
    last = str(override.path[-1])
    if last in DATA_OPTIONS:
        instead_of["sweep"].append("dataset")
    return [(section, last) for section in instead_of.get(str(override.path[0]), ())]


def _without_effect(overrides: Sequence[Override]) -> set[KeyPath]:
    """The paths of all values that these overrides replace or drop."""
    dropped: set[KeyPath] = {path for override in overrides for path in _dropped_by(override)}
    named = [override.value for override in overrides if override.path == ("sweep", AXIS)]
    for names in named:
        kept = {axis for backend in backends_of({}, {AXIS: names}).values() for axis in backend.axes}
        others = {axis for backend in LOADER_BACKENDS.values() for axis in backend.axes} - kept
        dropped |= {(section, axis) for section in ("sweep", "baseline") for axis in others}
    return dropped | {override.path for override in overrides}


def _axes_of_loaders(data: dict[str, Any]) -> set[KeyPath]:
    """The paths of the sweep's axes that belong to its loaders."""
    loader, sweep = data.get("loader"), data.get("sweep")
    swept = sweep if isinstance(sweep, dict) else {}
    backends = backends_of(loader if isinstance(loader, dict) else {}, swept)
    return {("sweep", axis) for axis in swept if any(axis in backend.axes for backend in backends.values())}


def _drop_axes(data: dict[str, Any], paths: Collection[KeyPath]) -> None:
    """Drop axes whose loader a flag has removed, such as `threads` with `-P loader=torch`."""
    for _, axis in paths:
        data["sweep"].pop(axis, None)
        if isinstance(data.get("baseline"), dict):
            data["baseline"].pop(axis, None)


def _validate(data: dict[str, Any], where: _Locator, file: Path) -> Suite:
    filled = {key: value for key, value in data.items() if value is not None or key not in Suite.model_fields}
    filled.setdefault("name", file.stem)
    try:
        return Suite.model_validate(filled)
    except ValidationError as error:
        raise SuiteError(where.first([problem_of(detail) for detail in error.errors()])) from None


def _consumer_problems(suite: Suite) -> Iterator[Problem]:
    yield from map(_as_problem, option_problems(suite.consumer))


def _measure_problems(suite: Suite) -> Iterator[Problem]:
    """Yield settings that trials cannot meet: a steady state beyond the time limit, a cold cache of unknown files."""
    measure = suite.measure
    if measure.timeout_s < SHORTEST_LIMIT * measure.seconds:
        limit = f"needs a time limit of at least {SHORTEST_LIMIT * measure.seconds:g} s for a trial"
        yield Problem(("measure", "seconds"), f"{limit}; raise measure.timeout_s ({measure.timeout_s:g})")
    if measure.cache == "cold" and (why := suite.dataset.why_no_files):
        yield Problem(("measure", "cache"), f"{why}; remove `cache: cold`")


def _as_problem(found: OptionProblem) -> Problem:
    return Problem(("consumer", found.option) if found.option else ("consumer",), found.what, found.at_key)


class _Locator:
    """Prefixes a problem with its place: a flag of the call, or line and column of the file."""

    def __init__(self, file: str, parsed: ParsedText, flags: dict[KeyPath, str]) -> None:
        self._file, self._parsed, self._flags = file, parsed, flags

    def first(self, problems: Sequence[Problem]) -> str:
        """One line for the first problem in file order, with the count of the others."""
        ordered = sorted(problems, key=lambda problem: (self._position(problem).line, self._position(problem).column))
        more = f" (and {len(problems) - 1} more)" if len(problems) > 1 else ""
        return self.line_of(ordered[0]) + more

    def line_about(self, value: str, what: str) -> str:
        """A problem of the first option that has this text as its value; without a place if none has it."""
        path = next(_paths_to(value, self._parsed.value), None)
        return what if path is None else self.line_of(Problem(path, what))

    def line_of(self, problem: Problem) -> str:
        """A problem with its place."""
        for length in range(len(problem.path), 0, -1):
            if flag := self._flags.get(problem.path[:length]):
                return printable(f"{flag}: {problem.what}")
        return _line(self._file, self._position(problem), problem.path, problem.what)

    def _position(self, problem: Problem) -> Position:
        if problem.at_key and (found := self._parsed.keys.get(problem.path)):
            return found
        for length in range(len(problem.path), -1, -1):
            if found := self._parsed.values.get(problem.path[:length]):
                return found
        return Position(1, 1)


def _paths_to(value: str, suite: dict[str, Any]) -> Iterator[KeyPath]:
    """The places of options of text that have this value, by themselves or in a list."""
    for path in ((section, option) for section, options in suite.items() for option in _texts_in(section, options)):
        found = suite[path[0]][path[1]]
        if found == value:
            yield path
        listed = found if isinstance(found, list) else []
        yield from ((*path, index) for index, one in enumerate(listed) if one == value)


def _texts_in(section: str, options: Any) -> list[str]:
    return [option for option in options if (section, option) in _TEXTS] if isinstance(options, dict) else []


def _line(file: str, position: Position, path: KeyPath, what: str) -> str:
    key = "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in path).lstrip(".")
    return printable(f"{file}:{position.line}:{position.column}: {key + ': ' if key else ''}{what}")


def _shape(value: Any) -> str:
    return "a list" if isinstance(value, list) else "a single value"
