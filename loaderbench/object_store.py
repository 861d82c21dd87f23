"""Objects in a store or on any web server: read by number, one request each, at once or as a stream.

Requests block the calling thread, as reads of a local file do. The stage read and blocked workers therefore mean the
same for both.
"""

from __future__ import annotations

import http.client
import re
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, closing, contextmanager
from dataclasses import dataclass
from functools import partial
from importlib.util import find_spec
from pathlib import Path, PurePath
from typing import Any, Generic, Protocol, TypeVar
from urllib.parse import quote, urlsplit

from loaderbench.errors import MissingError
from loaderbench.per_thread import PerThread

SCHEMES = ("http", "https", "s3")
INSTALL = "uv pip install boto3"
TIMEOUT_S = 30.0
"""Timeout of a request without an answer."""

PAUSES_S = (0.1, 0.2, 0.4)
"""Pauses before each retry of a request to a busy store."""

_COMPARED_BYTES = 64 << 10
_BUSY = (429, 500, 502, 503, 504)
_BUCKET = re.compile(r"[a-zA-Z0-9._-]{1,255}")
_LOST = (http.client.HTTPException, ConnectionResetError, BrokenPipeError)


def wrong_url(value: Any) -> str | None:
    """The problem with a value of `storage`; `None` if it is valid."""
    if value is None or (isinstance(value, str) and _is_address(value)):
        return None
    return f"expected null, http://HOST/FOLDER, https://HOST/FOLDER or s3://BUCKET/FOLDER, got {value!r}"


def _is_address(url: str) -> bool:
    """Whether a URL is valid. It has no password, which reports would show, and no query, which would be per object."""
    try:
        parts = urlsplit(url)
        is_host = bool((parts.hostname or "").encode("idna")) and parts.port != 0
    except ValueError:  # a port that is not a number, half an IPv6 address, an invalid DNS name
        return False
    if not url.startswith(tuple(f"{scheme}://" for scheme in SCHEMES)) or parts.query + parts.fragment:
        return False
    return _BUCKET.fullmatch(parts.netloc) is not None if parts.scheme == "s3" else is_host and "@" not in parts.netloc


class Stream(Protocol):
    """A stream of an object's bytes."""

    def read(self, size: int, /) -> bytes:
        """Read `size` bytes, or fewer at the end."""
        ...

    def close(self) -> None:
        """Close the stream's connection."""
        ...


Body = TypeVar("Body", bytes, Stream)


class ObjectStore:
    """Reads objects by number. `names` are object names below `url`.

    Can be pickled, forked, and called from several threads: each thread has its own connections.
    """

    def __init__(self, url: str, names: Sequence[str], *, timeout_s: float = TIMEOUT_S) -> None:
        self._url, self._names, self._timeout_s = url.rstrip("/"), names, timeout_s
        self._held = PerThread()
        if url.startswith("s3://") and find_spec("boto3") is not None:
            import boto3  # noqa: F401 - once, before workers are forked, and not in each of them

    def __call__(self, number: int) -> bytes:
        """Return the bytes of an object.

        Raises `FileNotFoundError` with the object's URL if it does not exist, and `ConnectionError` for any other
        failure.
        """
        with self._errors_named(number) as name:
            if self._is_s3:
                return _from_s3(self._url, name, self._held.opened(), self._timeout_s, lambda body: bytes(body.read()))
            return _get_http(self._url, name, self._held.opened(), self._timeout_s)

    @contextmanager
    def stream(self, number: int) -> Iterator[Stream]:
        """Stream an object without holding all of it in memory. Raises as a call does, and so does `read`."""
        with self._errors_named(number) as name:
            if self._is_s3:
                found: Stream = _from_s3(self._url, name, self._held.opened(), self._timeout_s, _S3Stream)
            else:
                found = _stream_http(self._url, name, self._timeout_s)
        with closing(found):
            yield _NamedStream(found, partial(self._errors_named, number))

    def address(self, number: int) -> str:
        """The URL of an object."""
        return f"{self._url}/{self._names[number]}"

    @property
    def _is_s3(self) -> bool:
        return self._url.startswith("s3://")

    @contextmanager
    def _errors_named(self, number: int) -> Iterator[str]:
        """Yield the name of an object; errors raised inside the block get its URL."""
        address = self.address(number)
        try:
            yield self._names[number]
        except _NotThereError as error:
            raise FileNotFoundError(f"{address}: {error}") from None
        except _RefusedError as error:
            raise ConnectionError(f"{address}: {error}") from None
        except TimeoutError:
            raise ConnectionError(f"{address}: no answer in {self._timeout_s:g} s") from None
        except _LOST as error:
            raise ConnectionError(f"{address}: {_lost(error)}") from error
        except OSError as error:
            raise ConnectionError(f"{address}: {error.strerror or error}") from error


@dataclass(frozen=True)
class _NamedStream:
    """A stream whose errors contain the URL of its object."""

    stream: Stream
    errors_named: Callable[[], AbstractContextManager[str]]

    def read(self, size: int, /) -> bytes:
        with self.errors_named():
            return self.stream.read(size)

    def close(self) -> None:
        self.stream.close()


@dataclass(frozen=True)
class _Answer(Generic[Body]):
    """An answer of a web server. The body of an error is omitted."""

    status: int
    reason: str
    body: Body | None = None


class _RefusedError(Exception):
    """The store's answer contains no object; the message says what it contains."""


class _NotThereError(_RefusedError):
    """The store has no such object."""


def check_store(url: str, names: Sequence[str]) -> None:
    """Read one object. Raises `MissingError` on failure, since every trial would fail."""
    check_client(url)
    try:
        ObjectStore(url, names)(0)
    except OSError as error:
        raise MissingError(f"storage {error}") from error


def check_copy(url: str, folder: Path, files: Sequence[Path]) -> None:
    """Compare the first 64 KiB of some files of a folder with their copies in the store.

    Raises `MissingError` for the first copy that is missing or differs.
    """
    check_client(url)
    store = ObjectStore(url, [file.relative_to(folder).as_posix() for file in files])
    for number, file in enumerate(files):
        try:
            with store.stream(number) as stream, file.open("rb") as local:
                is_same = _read_up_to(stream, _COMPARED_BYTES) == local.read(_COMPARED_BYTES)
        except FileNotFoundError as error:
            raise MissingError(f"storage {error}; upload {folder} to {url}") from error
        except OSError as error:
            raise MissingError(f"storage {error}") from error
        if not is_same:
            raise MissingError(f"storage {store.address(number)}: differs from {file}; upload {folder} to {url} again")


def _read_up_to(stream: Stream, size: int) -> bytes:
    """Read `size` bytes: a single read can return fewer than requested."""
    found = b""
    while more := stream.read(size - len(found)):
        found += more
    return found


def check_client(url: str) -> None:
    """Raise `MissingError` if the library that reads from this kind of store is not installed."""
    if url.startswith("s3://") and find_spec("boto3") is None:
        raise MissingError(f"storage {url}: boto3 is not installed; run `{INSTALL}`")


def names_below(root: PurePath, samples: Sequence[tuple[str, int]]) -> list[str]:
    """Names of objects: paths relative to the folder, with `/`."""
    return [PurePath(path).relative_to(root).as_posix() for path, _ in samples]


def _get_http(url: str, name: str, opened: dict[Any, Any], timeout_s: float) -> bytes:
    """Get an object over a connection that is kept open. Raises `_RefusedError` and `OSError`."""
    netloc = urlsplit(url).netloc

    def once() -> _Answer[bytes]:
        kept = opened.pop(netloc, None)  # kept again once the answer is complete
        connection = kept or _connection(url, timeout_s)
        try:
            answer = _send_request(connection, url, name)
        except _LOST:
            if kept is None:
                raise
            return once()  # the store had closed the connection: try a new one immediately
        found = _Answer(answer.status, answer.reason, answer.read())
        opened[netloc] = connection
        return found

    return _with_retries(once)


def _stream_http(url: str, name: str, timeout_s: float) -> Stream:
    """Stream an object over a connection that ends with the stream. Raises `_RefusedError` and `OSError`."""

    def once() -> _Answer[Stream]:
        with ExitStack() as opened:
            connection = opened.enter_context(closing(_connection(url, timeout_s)))
            found = _send_request(connection, url, name)
            if found.status != http.client.OK:
                return _Answer(found.status, found.reason)
            opened.pop_all()
            return _Answer(found.status, found.reason, _HttpStream(connection, found))

    return _with_retries(once)


class _HttpStream:
    """An answer with its own connection."""

    def __init__(self, connection: http.client.HTTPConnection, answer: http.client.HTTPResponse) -> None:
        self._connection, self._answer = connection, answer
        self._left = answer.length

    def read(self, size: int, /) -> bytes:
        """Read from the answer. Raises `ConnectionResetError` if it ends before its `Content-Length`."""
        found = self._answer.read(size)
        if self._left is not None:
            self._left -= len(found)
            if not found and size and self._left:
                raise ConnectionResetError(f"{self._left:,} bytes are missing")
        return found

    def close(self) -> None:
        self._answer.close()
        self._connection.close()


def _send_request(connection: http.client.HTTPConnection, url: str, name: str) -> http.client.HTTPResponse:
    connection.request("GET", f"{quote(urlsplit(url).path, safe='/%')}/{quote(name, errors='surrogateescape')}")
    return connection.getresponse()


def _connection(url: str, timeout_s: float) -> http.client.HTTPConnection:
    parts = urlsplit(url)
    kind = http.client.HTTPSConnection if parts.scheme == "https" else http.client.HTTPConnection
    return kind(parts.netloc, timeout=timeout_s)


def _with_retries(once: Callable[[], _Answer[Body]]) -> Body:
    """Repeat a request while the store is busy or loses the connection. Raises `_RefusedError`."""
    for pause_s in (*PAUSES_S, None):
        try:
            found = once()
            if found.status == http.client.OK and found.body is not None:
                return found.body
            why = f"HTTP {found.status} {found.reason}".strip()
            if found.status == http.client.NOT_FOUND:
                raise _NotThereError(why)
            if found.status not in _BUSY:
                break
        except _LOST as error:
            why = _lost(error)
        if pause_s is not None:
            time.sleep(pause_s)
    raise _RefusedError(why)


def _from_s3(url: str, name: str, opened: dict[Any, Any], timeout_s: float, taken: Callable[[Any], Body]) -> Body:
    """Read an object's body with boto3, with credentials and endpoint from the usual variables.

    Raises `_RefusedError` and `OSError`.
    """
    from botocore.exceptions import ClientError

    parts = urlsplit(url)
    key = f"{parts.path}/{name}".lstrip("/")
    with _s3_errors():
        client = _client(opened, timeout_s)

    def once() -> _Answer[Body]:
        try:
            with _s3_errors():
                return _Answer(http.client.OK, "", taken(client.get_object(Bucket=parts.netloc, Key=key)["Body"]))
        except ClientError as error:
            status: int = error.response["ResponseMetadata"]["HTTPStatusCode"]
            texts = (error.response["Error"].get(part, "") for part in ("Code", "Message"))
            return _Answer(status, ": ".join(text for text in texts if text not in ("", str(status))))

    return _with_retries(once)


class _S3Stream:
    """The body of a boto3 answer."""

    def __init__(self, body: Any) -> None:
        self._body = body

    def read(self, size: int, /) -> bytes:
        with _s3_errors():
            found: bytes = self._body.read(size)
            return found

    def close(self) -> None:
        self._body.close()


def _client(opened: dict[Any, Any], timeout_s: float) -> Any:
    """The client of this thread. It tries each request once: `_with_retries` retries."""
    import boto3
    from botocore.config import Config

    if "s3" not in opened:
        config = Config(connect_timeout=timeout_s, read_timeout=timeout_s, retries={"total_max_attempts": 1})
        opened["s3"] = boto3.session.Session().client("s3", config=config)
    return opened["s3"]


@contextmanager
def _s3_errors() -> Iterator[None]:
    """Convert boto3's exceptions to system errors or `_RefusedError`."""
    from botocore import exceptions as known

    try:
        yield
    except (known.ConnectionClosedError, known.IncompleteReadError, known.ResponseStreamingError) as error:
        raise ConnectionResetError(_one_line(error)) from error
    except (known.ReadTimeoutError, known.ConnectTimeoutError):
        raise TimeoutError from None
    except (known.BotoCoreError, ValueError) as error:  # for example an invalid endpoint, or a name that is not UTF-8
        raise _RefusedError(_one_line(error)) from error


def _lost(error: Exception) -> str:
    return f"connection lost: {error or type(error).__name__}"


def _one_line(error: Exception) -> str:
    return " ".join(str(error).split())
