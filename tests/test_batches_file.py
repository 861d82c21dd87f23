"""Batches of a run are written next to its timeline, and read back unchanged."""

from __future__ import annotations

import errno
import os
import re
from dataclasses import dataclass
from pathlib import Path

import pytest
from pyarrow import parquet

from loaderbench.errors import UsageError
from loaderbench.records import BatchTimes, Readings, TimelinePoint
from loaderbench.records.timeline import MOMENTS
from loaderbench.store import Store, parquet as parquet_files, readable_timeline
from loaderbench.store.parquet import BATCHES_FILE, batches_frame

MADE = BatchTimes(
    epoch=0,
    batch=3,
    samples=4,
    steady=True,
    asked_s=0.1,
    got_s=0.2,
    wait_s=0.05,
    ended_s=0.3,
    worker=1,
    began_s=0.02,
    collate_began_s=0.15,
    made_s=0.16,
    stages_s={"decode": 0.1, "read": 0.01},
)
UNTRACED = BatchTimes(epoch=1, batch=0, samples=2, asked_s=0.4, got_s=0.5, wait_s=0.1)


def readings() -> Readings:
    found = Readings([TimelinePoint("r1-c00", 0.1, "rss_bytes", 5.0), TimelinePoint("r1-c01", 0.1, "rss_bytes", 5.0)])
    found.keep_batches("r1-c00", [MADE, UNTRACED])
    found.keep_batches("r1-c01", [UNTRACED])
    return found


def test_batches_come_back_as_they_were(tmp_path: Path) -> None:
    Store(tmp_path / "run").write_timeline(readings())
    found, unreadable = readable_timeline(tmp_path / "run")
    assert not unreadable
    assert found.batches == {"r1-c00": (MADE, UNTRACED), "r1-c01": (UNTRACED,)}
    assert list(found) == list(readings())


def test_a_run_without_batches_has_no_such_file_and_none_are_read(tmp_path: Path) -> None:
    Store(tmp_path / "run").write_timeline(Readings())
    assert not (tmp_path / "run" / BATCHES_FILE).exists()
    found, unreadable = readable_timeline(tmp_path / "run")
    assert (dict(found.batches), unreadable) == ({}, ())


def test_the_batches_of_an_earlier_call_do_not_outlive_a_run_that_kept_none(tmp_path: Path) -> None:
    store = Store(tmp_path / "run")
    store.write_timeline(readings())
    store.write_timeline(Readings())
    assert not (tmp_path / "run" / BATCHES_FILE).exists()


def test_each_column_has_the_type_of_its_field_and_only_what_may_be_missing_can_be(tmp_path: Path) -> None:
    Store(tmp_path / "run").write_timeline(readings())
    schema = parquet.read_schema(tmp_path / "run" / BATCHES_FILE)
    found = {field.name: str(field.type) + (" or null" if field.nullable else "") for field in schema}
    whole, times = ("epoch", "batch", "samples"), (*MOMENTS, "wait_s")
    assert found.pop("stages_s").startswith("map<string, double")
    assert found == {
        "trial": "string",
        **dict.fromkeys(whole, "int64"),
        "steady": "bool",
        **dict.fromkeys(times, "double or null"),
        "worker": "int64 or null",
    }


def test_a_field_that_is_added_gets_the_column_it_declares(monkeypatch: pytest.MonkeyPatch) -> None:
    @dataclass(frozen=True, kw_only=True)
    class WithMore(BatchTimes):
        retries: int = 0
        node: str | None = None

    monkeypatch.setattr(parquet_files, "BatchTimes", WithMore)
    schema = parquet_files._schema()
    assert [(str(schema.field(name).type), schema.field(name).nullable) for name in ("retries", "node")] == [
        ("int64", False),
        ("string", True),
    ]


@pytest.mark.parametrize("content", [b"", b"PAR1 is not enough"])
def test_a_damaged_file_is_one_line(tmp_path: Path, content: bytes) -> None:
    Store(tmp_path / "run").write_timeline(readings())
    (tmp_path / "run" / BATCHES_FILE).write_bytes(content)
    _, (said,) = readable_timeline(tmp_path / "run")
    assert re.search(r"batches\.parquet: cannot be read: [^\n]+$", said)


def test_a_timeline_that_cannot_be_read_costs_the_batches_nothing_and_the_other_way_round(tmp_path: Path) -> None:
    for broken in ("timeline.parquet", "batches.parquet"):
        Store(tmp_path / broken).write_timeline(readings())
        (tmp_path / broken / broken).write_bytes(b"PAR1")
        found, (said,) = readable_timeline(tmp_path / broken)
        assert broken in said
        assert (list(found), dict(found.batches)) == (
            ([], dict(readings().batches)) if broken == "timeline.parquet" else (list(readings()), {})
        )


@pytest.mark.parametrize("name", ["timeline.parquet", "batches.parquet"])
def test_a_failed_write_of_readings_keeps_those_of_the_earlier_call(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    store = Store(tmp_path / "run")
    store.write_timeline(readings())
    before = (tmp_path / "run" / name).read_bytes()
    write = parquet.write_table

    def disk_is_full(table: object, place: Path, **options: object) -> None:
        if name not in Path(place).name:
            return write(table, place, **options)
        Path(place).write_bytes(b"PAR1")
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(parquet, "write_table", disk_is_full)
    with pytest.raises(UsageError, match=f"{name}: cannot write: No space left"):
        store.write_timeline(readings())
    store.close()
    assert (tmp_path / "run" / name).read_bytes() == before
    assert not list((tmp_path / "run").glob(".*.part"))


def test_what_a_resumed_run_keeps_are_the_batches_of_the_kept_trials() -> None:
    assert readings().only({"r1-c01"}).batches == {"r1-c01": (UNTRACED,)}
    assert readings().only({"r1-c01"}).trials == ("r1-c01",)


def test_as_a_table_each_batch_is_a_row() -> None:
    frame = batches_frame(readings().batches)
    assert list(frame["trial"]) == ["r1-c00", "r1-c00", "r1-c01"]
    assert frame["worker"].isna().tolist() == [False, True, True]


def test_moments_are_told_from_another_zero() -> None:
    moved = MADE.since(0.1)
    assert (moved.asked_s, moved.made_s, moved.wait_s, moved.stages_s) == (0.0, 0.06, 0.05, MADE.stages_s)
    assert UNTRACED.since(0.4).began_s is None
