"""What a `run.json` may hold, and the one line about what it may not."""

from __future__ import annotations

import gzip
import json
import re
from pathlib import Path
from typing import Any

import pytest

from loaderbench.errors import RunFileError
from loaderbench.store import Store, read_run, reading
from loaderbench.store.reading import NUMBERS


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "not valid run JSON"),
        ("[]", "not a run of loaderbench; expected a run folder or its run.json"),
        ('{"schema_version": 99}', "upgrade loaderbench"),
        ('{"schema_version": 0}', "schema_version is 0; this version reads [^:]*$"),
        ('{"schema_version": "99"}', "schema_version is '99'; this version reads [^:]*$"),
        ('{"schema_version": 99}', "schema_version is 99"),
        ('{"schema_version": 1}', "field required"),
        ('{"schema_version": NaN}', "not valid run JSON"),
        ("[" * 100_000, "not valid run JSON"),
    ],
)
def test_what_is_no_run_is_one_line(tmp_path: Path, text: str, words: str) -> None:
    (tmp_path / "run.json").write_text(text)
    with pytest.raises(RunFileError, match=words) as caught:
        read_run(tmp_path)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("number", ["9e29", "-9e29", "1.1e-30", "-1.1e-30", "0", "0.0", "12", "-12"])
def test_numbers_that_a_run_can_hold_are_read(number: str) -> None:
    assert json.loads(number, **NUMBERS) == float(number)


@pytest.mark.parametrize("number", ["1e30", "-1.1e30", "1e-30", "-9e-31", f"{10**31}", "Infinity", "-Infinity", "NaN"])
def test_numbers_beyond_what_a_run_can_hold_are_refused(number: str) -> None:
    with pytest.raises(ValueError, match=r"out of range|not a JSON number"):
        json.loads(number, **NUMBERS)


@pytest.mark.parametrize(
    ("number", "said"),
    [
        ("1" * 500, f"{'1' * 20}...11111"),
        ("1.2345678901234567e-130", "1.2345678901234567e-130"),
        (f"1.{'2' * 40}e+222", f"1.{'2' * 18}...e+222"),
    ],
)
def test_of_a_number_that_is_out_of_range_its_exponent_is_said(number: str, said: str) -> None:
    with pytest.raises(ValueError, match=rf"number out of range: {re.escape(said)}$"):
        json.loads(number, **NUMBERS)


def test_a_run_of_more_than_half_a_gigabyte_is_not_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with (tmp_path / "run.json").open("wb") as file:
        file.truncate(500_000_001)
    with pytest.raises(RunFileError, match="larger than 500,000,000 bytes"):
        read_run(tmp_path)
    (tmp_path / "run.json").write_text("[]")
    monkeypatch.setattr(reading, "MAX_RUN_BYTES", 2)
    with pytest.raises(RunFileError, match="not a run of loaderbench"):
        read_run(tmp_path)


def test_a_run_that_cannot_be_opened_is_one_line(tmp_path: Path) -> None:
    (tmp_path / "run.json").mkdir()
    with pytest.raises(RunFileError, match="cannot read: Is a directory"):
        read_run(tmp_path)


def recorded(tmp_path: Path) -> dict[str, Any]:
    """A run of schema 1 that measured nothing."""
    packed = Path(__file__).parent / "recorded" / "synthetic_nothing_measured.json.gz"
    found: dict[str, Any] = json.loads(gzip.decompress(packed.read_bytes()))
    return found


def test_a_run_of_either_schema_is_read_and_written_again_as_it_is(tmp_path: Path) -> None:
    (tmp_path / "run.json").write_text(json.dumps(recorded(tmp_path)))
    run = read_run(tmp_path)
    store = Store(tmp_path / "again")
    store.write_run(run)
    store.close()
    assert json.loads((tmp_path / "again" / "run.json").read_text())["schema_version"] == 2
    assert read_run(tmp_path / "again") == run


def test_of_several_fields_that_are_wrong_the_first_is_named(tmp_path: Path) -> None:
    broken = {**recorded(tmp_path), "name": 7, "complete": "perhaps", "started_at": 7}
    (tmp_path / "run.json").write_text(json.dumps(broken))
    with pytest.raises(RunFileError, match=r"run.json: name: ") as raised:
        read_run(tmp_path)
    assert "\n" not in str(raised.value)


def test_a_missing_run_is_one_line(tmp_path: Path) -> None:
    with pytest.raises(RunFileError, match=r"no such run; expected a run folder or its run.json$"):
        read_run(tmp_path / "none")
    (tmp_path / "trials.jsonl").touch()
    with pytest.raises(RunFileError, match=r"; trials\.jsonl next to it holds its trials$"):
        read_run(tmp_path)


def test_a_number_beyond_all_numbers_is_refused(tmp_path: Path) -> None:
    (tmp_path / "run.json").write_text('{"schema_version": 1, "x": 1e999}')
    with pytest.raises(RunFileError, match="number out of range: 1e999"):
        read_run(tmp_path)
