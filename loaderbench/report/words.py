"""Shared words, and strings from outside, cleaned and cut to a length that a report can show."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Mapping

from loaderbench.records import Config, IsolationRunName, config_name
from loaderbench.records.words import STAGE_NAMES
from loaderbench.report.model import Text

WHOLE_LIMIT = 20_000  # characters of a title; more would bloat the report and never be read
NAME_LIMIT = 60
LABEL_LIMIT = 120
SENTENCE_LIMIT = 600
MESSAGE_LIMIT = 1200

ISOLATION_RUNS: dict[IsolationRunName, str] = {
    "replay_device": "cached batches in GPU memory",
    "replay_host": "cached batches in host memory",
    "loader_warm": "loader alone, warm page cache",
    "loader_cold": "loader alone, cold page cache",
    "end_to_end": "loader and consumer",
}

_EXPLAINED = {
    "sample": "time in the dataset outside every other stage",
    "transport": "stage transport: from a worker process to the main process",
    "transfer": "stage transfer: from host memory to the GPU",
}

# Marks that change the text direction: they can display text in another order than it is stored.
_DIRECTION_MARKS = re.compile("[\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]")
_NOT_IN_XML = re.compile("[\ufffe\uffff]")
_SEPARATOR = re.compile(r"[/\\]")


def clean(text: str) -> str:
    """The text without direction marks and all that XML cannot hold: control characters, lone surrogates and others.

    Lone surrogates are found in odd file names.
    """
    safe = _NOT_IN_XML.sub("", _DIRECTION_MARKS.sub("", text.encode("utf-8", "replace").decode("utf-8")))
    return "".join(" " if unicodedata.category(c) == "Cc" and c != "\n" else c for c in safe)


def outside(text: str, limit: int) -> Text:
    """One line of at most `limit` characters, with the complete text in its title if it was cut."""
    safe = clean(text)
    line = " ".join(safe.split())
    if len(line) <= limit:
        return Text(line)
    return Text(line[: limit - 1].rstrip() + "\u2026", safe[:WHOLE_LIMIT])


def axis_value(text: str, limit: int) -> Text:
    """The value of an axis. A path keeps its end, by which two folders differ."""
    found = outside(text, limit)
    if found.title is None or "/" not in text:
        return found
    return Text("\u2026" + " ".join(clean(text).split())[1 - limit :].lstrip(), found.title)


def plain(text: str, limit: int) -> str:
    """Like `outside`, for places without a title."""
    return outside(text, limit).text


def name(text: str) -> Text:
    """A short string from outside."""
    return outside(text, NAME_LIMIT)


def sentence(text: str) -> Text:
    """A sentence from outside."""
    return outside(text, SENTENCE_LIMIT)


def message_end(text: str) -> Text:
    """The end of an error message, which has the cause. Lines are kept."""
    safe = clean(text).strip()
    if len(safe) <= MESSAGE_LIMIT:
        return Text(safe)
    return Text("\u2026" + safe[-MESSAGE_LIMIT:], safe[-WHOLE_LIMIT:])


def configuration(config: Config) -> Text:
    """A configuration in one line. Without axes, it is the user's own loader."""
    return outside(config_name(config), LABEL_LIMIT)


def stage(name_of: str) -> Text:
    """The displayed name of a stage. `sample` is the time outside all other stages; users can name their own stages."""
    return Text(STAGE_NAMES[name_of], _EXPLAINED[name_of]) if name_of in _EXPLAINED else outside(name_of, 40)


def file_name(path: str) -> str:
    """The last component of a path of any operating system."""
    return _SEPARATOR.split(path.rstrip("/\\"))[-1]


def capitalised(text: str) -> str:
    """The text with its first letter capitalized and the rest unchanged."""
    return text[:1].upper() + text[1:]


def reason_of(field: str, *reasons: Mapping[str, str]) -> str | None:
    """Why `field` is missing, from the first record with a reason."""
    return next((reasons_of_record[field] for reasons_of_record in reasons if reasons_of_record.get(field)), None)
