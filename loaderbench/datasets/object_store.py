"""Files in an object store, or on any web server: read by number, with one request each.

Requests block the thread that asks, as reads of a local file do: the stage read and what workers are blocked on mean
the same for both.
"""

from __future__ import annotations

import http.client
import re
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
_BUCKET = re.compile(r"[a-zA-Z0-9._-]{1,255}")
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
        is_host = bool((parts.hostname or "").encode("idna")) and parts.port != 0
    except ValueError:  # a port that is not a number, half of an IPv6 address, a name that DNS cannot have
        return False
    if not url.startswith(tuple(f"{scheme}://" for scheme in SCHEMES)) or parts.query + parts.fragment:
        return False
    return _BUCKET.fullmatch(parts.netloc) is not None if parts.scheme == "s3" else is_host and "@" not in parts.netloc


class ObjectStore:
    """From the number of a sample to the bytes of its object. `names` are those below `url`, in the order of samples.

    Can be pickled, forked, and called in several threads: each has connections of its own.
    """

    def __init__(self, url: str, names: Sequence[str], *, timeout_s: float = TIMEOUT_S) -> None:
        self._url, self._names, self._timeout_s = url.rstrip("/"), names, timeout_s
        self._held = PerThread()
        if url.startswith("s3://") and find_spec("boto3") is not None:
            import boto3  # noqa: F401 - once, before workers are forked, and not in each of them

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
    path = f"{quote(parts.path, safe='/%')}/{quote(name, errors='surrogateescape')}"

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

    return _asked(once)


def _connection(scheme: str, netloc: str, timeout_s: float) -> http.client.HTTPConnection:
    kind = http.client.HTTPSConnection if scheme == "https" else http.client.HTTPConnection
    return kind(netloc, timeout=timeout_s)


def _asked(once: Callable[[], _Answer]) -> bytes:
    """Ask again while the store is busy, or loses the connection."""
    for pause_s in (*PAUSES_S, None):
        try:
            found = once()
            if found.status == http.client.OK:
                return found.data
            why = f"HTTP {found.status} {found.reason}".strip()
            if found.status not in _BUSY:
                break
        except _LOST as error:
            why = f"connection lost: {error or type(error).__name__}"
        if pause_s is not None:
            time.sleep(pause_s)
    raise _RefusedError(why)


def _get_s3(url: str, name: str, opened: dict[Any, Any], timeout_s: float) -> bytes:
    """By boto3, with the credentials and the endpoint of the usual variables. Raises `_RefusedError`."""
    from botocore import exceptions as known

    parts = urlsplit(url)
    key = f"{parts.path}/{name}".lstrip("/")

    def once() -> _Answer:
        try:
            return _Answer(
                http.client.OK,
                "",
                client.get_object(Bucket=parts.netloc, Key=key)["Body"].read(),
            )
        except known.ClientError as error:
            status: int = error.response["ResponseMetadata"]["HTTPStatusCode"]
            said = (error.response["Error"].get(part, "") for part in ("Code", "Message"))
            return _Answer(
                status,
                ": ".join(text for text in said if text not in ("", str(status))),
                b"",
            )
        except (
            known.ConnectionClosedError,
            known.IncompleteReadError,
            known.ResponseStreamingError,
        ) as error:
            raise ConnectionResetError(_one_line(error)) from error

    try:
        client = _client(opened, timeout_s)
        return _asked(once)
    except (known.ReadTimeoutError, known.ConnectTimeoutError):
        raise TimeoutError from None
    except (
        known.BotoCoreError,
        ValueError,
    ) as error:  # such as those of an endpoint, or of a name that is not UTF-8
        raise _RefusedError(_one_line(error)) from error


def _client(opened: dict[Any, Any], timeout_s: float) -> Any:
    """The client of this thread. It tries each request once: retries are those of `_asked`."""
    import boto3
    from botocore.config import Config

    if "s3" not in opened:
        config = Config(
            connect_timeout=timeout_s,
            read_timeout=timeout_s,
            retries={"total_max_attempts": 1},
        )
        opened["s3"] = boto3.session.Session().client("s3", config=config)
    return opened["s3"]


def _one_line(error: Exception) -> str:
    return " ".join(str(error).split())
