"""Files in an object store, or on any web server: read by number, with one request each.

Requests block the thread that asks, as reads of a local file do: the stage read and what workers are blocked on mean
the same for both.
"""

from __future__ import annotations

import http.client
import time
from collections.abc import Callable, Sequence
from importlib.util import find_spec
from pathlib import PurePath
from typing import Any, NamedTuple
from urllib.parse import quote, urlsplit

from loaderbench.errors import MissingError
from loaderbench.formats import PerThread

SCHEMES = ("http", "https", "s3")
INSTALL = "uv pip install boto3"
TIMEOUT_S = 30.0
"""Of one request that gets no answer."""

PAUSES_S = (0.1, 0.2, 0.4)
"""Before each retry of a request that the store was too busy for."""

_BUSY = (429, 500, 502, 503, 504)
_LOST = (http.client.HTTPException, ConnectionResetError, BrokenPipeError)


def wrong_url(value: Any) -> str | None:
    """What is wrong with the value of `storage`; `None` where nothing is."""
    if value is None or (isinstance(value, str) and _is_address(value)):
        return None
    return f"expected null, http://HOST/FOLDER, https://HOST/FOLDER or s3://BUCKET/FOLDER, got {value!r}"


def _is_address(url: str) -> bool:
    """Without a password, which reports would show, and without a query, which each object needs for itself."""
    try:
        parts = urlsplit(url)
    except ValueError:
        return False
    return (
        parts.scheme in SCHEMES and bool(parts.netloc) and "@" not in parts.netloc and not parts.query + parts.fragment
    )


class ObjectStore:
    """From the number of a sample to the bytes of its object. `names` are those below `url`, in the order of samples.

    Can be pickled, forked, and called in several threads: each has connections of its own.
    """

    def __init__(self, url: str, names: Sequence[str], *, timeout_s: float = TIMEOUT_S) -> None:
        self._url, self._names, self._timeout_s = url.rstrip("/"), names, timeout_s
        self._held = PerThread()

    def __call__(self, number: int) -> bytes:
        """The bytes of an object. Raises `OSError` with its URL where the store gives none."""
        name = self._names[number]
        get = _get_s3 if self._url.startswith("s3://") else _get_http
        try:
            return get(self._url, name, self._held.opened(), self._timeout_s)
        except _RefusedError as error:
            raise OSError(f"{self._url}/{name}: {error}") from None
        except TimeoutError:
            raise OSError(f"{self._url}/{name}: no answer in {self._timeout_s:g} s") from None
        except OSError as error:
            raise OSError(f"{self._url}/{name}: {error.strerror or error}") from error


class _Answer(NamedTuple):
    """Of a web server."""

    status: int
    reason: str
    data: bytes


class _RefusedError(Exception):
    """The store's answer holds no object; the message says what it holds."""


def check_store(url: str, names: Sequence[str]) -> None:
    """Read one object. Raises `MissingError` where that fails: each trial would."""
    if url.startswith("s3://") and find_spec("boto3") is None:
        raise MissingError(f"storage {url}: boto3 is not installed; run `{INSTALL}`")
    try:
        ObjectStore(url, names)(0)
    except OSError as error:
        raise MissingError(f"storage {error}") from error


def names_below(root: PurePath, samples: Sequence[tuple[str, int]]) -> list[str]:
    """The names of objects: paths relative to the folder, with `/`."""
    return [PurePath(path).relative_to(root).as_posix() for path, _ in samples]


def _get_http(url: str, name: str, opened: dict[Any, Any], timeout_s: float) -> bytes:
    """By a connection that is kept open. Raises `_RefusedError` and `OSError`."""
    parts = urlsplit(url)
    path = f"{quote(parts.path, safe='/%')}/{quote(name)}"

    def once() -> _Answer:
        kept = opened.pop(parts.netloc, None)  # kept again once its answer is complete
        connection = kept or _connection(parts.scheme, parts.netloc, timeout_s)
        try:
            connection.request("GET", path)
            answer = connection.getresponse()
        except _LOST:
            if kept is None:
                raise
            return once()  # the store had closed it: a new one is tried at once
        found = _Answer(answer.status, answer.reason, answer.read())
        opened[parts.netloc] = connection
        return found

    found = _asked(once)
    if found.status != http.client.OK:
        raise _RefusedError(f"HTTP {found.status} {found.reason}".strip())
    return found.data


def _connection(scheme: str, netloc: str, timeout_s: float) -> http.client.HTTPConnection:
    kind = http.client.HTTPSConnection if scheme == "https" else http.client.HTTPConnection
    return kind(netloc, timeout=timeout_s)


def _asked(once: Callable[[], _Answer], pauses_s: Sequence[float] = PAUSES_S) -> _Answer:
    """Ask again while the store is busy, or has closed a connection that was kept open."""
    try:
        found = once()
        if found.status not in _BUSY or not pauses_s:
            return found
    except _LOST as error:
        if not pauses_s:
            raise _RefusedError(f"connection lost: {error or type(error).__name__}") from error
    time.sleep(pauses_s[0])
    return _asked(once, pauses_s[1:])


def _get_s3(url: str, name: str, opened: dict[Any, Any], timeout_s: float) -> bytes:
    """By boto3, with the credentials and the endpoint of the usual variables. Raises `_RefusedError`."""
    import boto3
    from botocore.config import Config
    from botocore.exceptions import BotoCoreError, ClientError, ReadTimeoutError

    if "s3" not in opened:
        retries = {"total_max_attempts": 1 + len(PAUSES_S)}
        config = Config(connect_timeout=timeout_s, read_timeout=timeout_s, retries=retries)
        opened["s3"] = boto3.session.Session().client("s3", config=config)
    parts = urlsplit(url)
    key = f"{parts.path}/{name}".lstrip("/")
    try:
        data: bytes = opened["s3"].get_object(Bucket=parts.netloc, Key=key)["Body"].read()
    except ReadTimeoutError:
        raise TimeoutError from None
    except (BotoCoreError, ClientError) as error:
        raise _RefusedError(str(error)) from error
    return data
