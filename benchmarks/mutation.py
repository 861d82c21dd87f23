"""Mutation testing: make small changes to the code, one at a time, and list those that no test catches.

    uv run --group mutation python benchmarks/mutation.py [PART ...] [--file TEXT] [--sample N] [--again] [--minutes N]

Prints for each part of the package how many changes ("mutants") its tests kill, and each one that survives. The changes
are cosmic-ray's operators that `mutation_operators.py` lists, and some of our own: other comparisons, numbers, signs
and conditions, a call or a loop removed, an exception not caught, `min` for `max`. mutmut was the alternative: it skips
module constants, and therefore every threshold. Not changed: strings, annotations, `strict=` of `zip` and imports for
the type checker.

Each change is tried in a new process by the tests that reach its lines, fastest first, until one fails or the time is
up. Killed mutants are kept in `.mutation/` as long as the file and the test stay unchanged; `--again` tries all of
them. Equivalent mutants are listed with the reason in `mutation_equivalents.yaml`, by their text. Uses one process, and
takes minutes per part.
"""

from __future__ import annotations

import argparse
import gc
import json
import random
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path

from mutation_operators import Mutant, mutants_of
from mutation_trial import ANEW, Change, Reached, Seconds, killer_anew, killers_in_place, survey
from rich.console import Console
from rich.table import Table
from ruamel.yaml import YAML

ROOT = Path(__file__).resolve().parent.parent
PACKAGE = ROOT / "loaderbench"
KEPT = ROOT / ".mutation"
EQUIVALENTS = Path(__file__).with_name("mutation_equivalents.yaml")
GOAL = 0.9
SPARE_S, TIMES = 4.0, 5.0
"""Time limit of the tests: this multiple of their time without the change, plus these seconds."""


@dataclass(frozen=True)
class Part:
    """Files of the package, and the tests that should detect changes to them."""

    files: tuple[str, ...]
    tests: tuple[str, ...]
    without: tuple[str, ...] = ()

    def sources(self) -> list[Path]:
        """The part's files, in order."""
        found = {file for pattern in self.files for file in PACKAGE.glob(pattern)}
        return sorted(found - {PACKAGE / name for name in self.without})


_OF_SESSION = (
    *("first_suite", "inputs", "isolation_plan", "measuring", "progress", "resuming", "running"),
    *("slice_order", "session", "verifier_time", "verifying"),
)
RECORDS = "tests/records/test_records.py"
_OF_STORE = (*(f"tests/test_{name}.py" for name in ("store", "schema_1", "run_list")), RECORDS)
PARTS = {
    "histogram": Part(("histogram.py",), ("tests/test_histogram.py",)),
    "gates": Part(("statistics/gates.py",), ("tests/statistics/test_gates.py",)),
    "statistics": Part(
        ("statistics/*.py",),
        ("tests/statistics", "tests/search/test_selection_steps.py", RECORDS),
        without=("statistics/gates.py",),
    ),
    "search": Part(("search/*.py",), ("tests/search",)),
    "store": Part(("store/*.py",), _OF_STORE),
    "diagnosis": Part(("diagnosis/*.py",), ("tests/diagnosis", RECORDS)),
    "records": Part(("records/*.py",), ("tests/records",)),
    "stalls": Part(("recorder/stalls.py",), ("tests/recorder/test_stalls.py", RECORDS)),
    "session": Part(("session/*.py",), tuple(f"tests/session/test_{name}.py" for name in _OF_SESSION)),
}


@dataclass(frozen=True)
class Tried:
    """A change and the test that kills it, or the reason why it is equivalent; both are empty if it survives."""

    mutant: Mutant
    killed_by: str
    equivalent: str = ""


def main() -> int:
    """Try the changes; return 1 if a part is below the goal."""
    asked = _arguments()
    _import_what_does_not_change()
    console, below = Console(width=140), False
    table = Table("part", "mutants", "equivalent", "killed", "survived", "killed of those that differ")
    for name in asked.parts or PARTS:
        tried = _try_part(name, asked)
        equivalent, killed = sum(bool(one.equivalent) for one in tried), sum(bool(one.killed_by) for one in tried)
        share = killed / max(1, len(tried) - equivalent)
        below |= share < GOAL
        survived = [one.mutant for one in tried if not one.killed_by and not one.equivalent]
        table.add_row(name, *map(str, (len(tried), equivalent, killed, len(survived))), f"{share:.1%}")
        for mutant in survived:
            print(f"{mutant.file.relative_to(ROOT)}:{mutant.line}\n  - {mutant.was}\n  + {mutant.becomes}", flush=True)
    console.print(table)
    return int(below)


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("parts", nargs="*", choices=[*PARTS, []], metavar="PART", help=", ".join(PARTS))
    parser.add_argument("--file", default="", help="only files whose path holds this")
    parser.add_argument("--sample", type=int, help="so many changes of each part, drawn at random")
    parser.add_argument("--again", action="store_true", help="try also what was killed before")
    parser.add_argument("--minutes", type=float, default=1e9, help="end after so long; the rest is not counted")
    asked = parser.parse_args()
    asked.until_s = time.monotonic() + 60 * asked.minutes
    return asked


def _import_what_does_not_change() -> None:
    """Import the third-party packages that tests use once, before forking."""
    import hypothesis.strategies
    import jsonschema
    import numpy
    import pandas
    import psutil
    import pyarrow.parquet
    import pydantic
    import scipy.stats
    import typer

    assert not any(name.partition(".")[0] == "loaderbench" for name in sys.modules)
    del hypothesis, jsonschema, numpy, pandas, psutil, pyarrow, pydantic, scipy, typer
    sys.path.insert(0, str(ROOT))
    sys.dont_write_bytecode, sys.pycache_prefix = False, str(KEPT / "pycache")
    gc.freeze()


def _try_part(name: str, asked: argparse.Namespace) -> list[Tried]:
    part = PARTS[name]
    files = [file for file in part.sources() if asked.file in str(file)]
    mutants = [mutant for file in files for mutant in mutants_of(file)]
    if asked.sample is not None and asked.sample < len(mutants):
        mutants = sorted(random.Random(name).sample(mutants, asked.sample), key=lambda one: (str(one.file), one.line))
    equivalents, kept = _Equivalents(), _Kept(KEPT / f"{name}.json", asked.again)
    open_ = [one for one in mutants if kept.killer(one) is None]
    found = {}
    for number, (one, killed_by) in enumerate(_killers(open_, part, files), 1):
        kept.add(one, killed_by)
        found[one] = killed_by
        if sys.stderr.isatty():
            print(f"\r{name} {number}/{len(open_)} ", end="", file=sys.stderr, flush=True)
        if time.monotonic() > asked.until_s:
            break
    kept.save()
    known = {**{one: kept.killer(one) or "" for one in mutants if one not in open_}, **found}
    return [Tried(one, known[one], "" if known[one] else equivalents.why(one)) for one in mutants if one in known]


def _killers(mutants: Sequence[Mutant], part: Part, files: Sequence[Path]) -> Iterator[tuple[Mutant, str]]:
    """Yield each change with the test that kills it; first the changes that need no import, which are most."""
    if not mutants:
        return
    seconds, reached = survey(files, part.tests)
    changes = {one: _change(one, seconds, reached) for one in mutants}
    yield from ((one, "") for one, change in changes.items() if not change.tests)
    tried = {one: change for one, change in changes.items() if change.tests}
    anew = []
    for one, answer in zip(tried, killers_in_place(list(tried.values()), part.tests), strict=True):
        if answer == ANEW:
            anew.append(one)
        else:
            yield one, answer
    yield from ((one, killer_anew(tried[one])) for one in anew)


def _change(mutant: Mutant, seconds: Seconds, reached: Reached) -> Change:
    """The change with the tests that reach it, fastest first; all tests if the import reaches it."""
    lines = reached.get(str(mutant.file), {})
    names = {name for line in mutant.lines for name in lines.get(line, ())}
    tests = sorted(seconds if "" in names else names & seconds.keys(), key=lambda name: seconds[name])
    module = ".".join(mutant.file.relative_to(ROOT).with_suffix("").parts)
    return Change(module, mutant.file, mutant.source, tests, SPARE_S + TIMES * sum(seconds[name] for name in tests))


class _Equivalents:
    """Equivalent changes, by file and text."""

    def __init__(self) -> None:
        listed = YAML(typ="safe").load(EQUIVALENTS) if EQUIVALENTS.exists() else []
        self._why = {
            (one["file"], one["was"], becomes): one["why"] for one in listed or () for becomes in one["becomes"]
        }

    def why(self, mutant: Mutant) -> str:
        """The reason why no test can detect the change; empty if one can."""
        return self._why.get((mutant.file.relative_to(PACKAGE).as_posix(), mutant.was, mutant.becomes), "")


class _Kept:
    """Mutants killed in earlier runs, and the test that killed each, while both files stay unchanged."""

    def __init__(self, file: Path, again: bool) -> None:
        self._file = file
        self._found: dict[str, list[str]] = json.loads(file.read_text()) if file.exists() and not again else {}

    def killer(self, mutant: Mutant) -> str | None:
        """The test that killed the mutant before, and would again."""
        killed_by, tested = self._found.get(_hash(mutant.source), ("", ""))
        return killed_by if killed_by and tested == _test_of(killed_by) else None

    def add(self, mutant: Mutant, killed_by: str) -> None:
        """Save the result unless the mutant survived, since other tests may kill it."""
        if killed_by:
            self._found[_hash(mutant.source)] = [killed_by, _test_of(killed_by)]

    def save(self) -> None:
        """Write the results."""
        self._file.parent.mkdir(exist_ok=True)
        self._file.write_text(json.dumps(self._found, indent=0))


def _test_of(name: str) -> str:
    file = ROOT / name.partition("::")[0]
    return _hash(file.read_text(encoding="utf-8")) if file.is_file() else ""


def _hash(text: str) -> str:
    return sha256(text.encode()).hexdigest()


if __name__ == "__main__":
    sys.exit(main())
