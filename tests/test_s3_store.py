"""Files in S3, with boto3: moto's server, and web servers of files on this machine."""

from __future__ import annotations

import multiprocessing
import socket
from collections.abc import Iterator
from pathlib import Path

import pytest
from served_files import differing, samples_of, served, set_credentials, six_files

from loaderbench.errors import MissingError
from loaderbench.object_store import ObjectStore, check_store, names_below


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return six_files(tmp_path)


@pytest.fixture
def keys(monkeypatch: pytest.MonkeyPatch) -> pytest.MonkeyPatch:
    """Credentials for boto3. A server of files answers its GET requests as S3 does."""
    set_credentials(monkeypatch)
    return monkeypatch


def test_s3_is_asked_again_as_often_as_a_web_server(folder: Path, keys: pytest.MonkeyPatch) -> None:
    with served(folder.parent, busy=3) as (url, handler):
        keys.setenv("AWS_ENDPOINT_URL", url)
        assert ObjectStore("s3://train", ["1/1.jpg"])(0) == (folder / "1" / "1.jpg").read_bytes()
        handler.busy = 5
        with pytest.raises(OSError, match=r"^s3://train/1/1.jpg: HTTP 503 Service Unavailable$"):
            ObjectStore("s3://train", ["1/1.jpg"])(0)
        assert handler.busy == 1


def test_s3_that_stalls_is_asked_once(keys: pytest.MonkeyPatch) -> None:
    with socket.socket() as silent:
        silent.bind(("127.0.0.1", 0))
        silent.listen()
        keys.setenv("AWS_ENDPOINT_URL", f"http://127.0.0.1:{silent.getsockname()[1]}")
        with pytest.raises(OSError, match=r"^s3://b/a.jpg: no answer in 0\.2 s$"):
            ObjectStore("s3://b", ["a.jpg"], timeout_s=0.2)(0)
        silent.settimeout(0)
        silent.accept()
        with pytest.raises(BlockingIOError):
            silent.accept()


@pytest.mark.parametrize(
    ("name", "value", "said"),
    [
        ("AWS_ENDPOINT_URL", "localhost:9000", "Invalid endpoint: localhost:9000"),
        ("AWS_PROFILE", "nope", "The config profile (nope) could not be found"),
        (
            "AWS_SECRET_ACCESS_KEY",
            "",
            "Partial credentials found in env, missing: AWS_SECRET_ACCESS_KEY",
        ),
    ],
)
def test_wrong_settings_of_s3_are_one_line(name: str, value: str, said: str, keys: pytest.MonkeyPatch) -> None:
    keys.setenv(name, value)
    with pytest.raises(MissingError) as raised:
        check_store("s3://b", ["a.jpg"])
    assert str(raised.value) == f"storage s3://b/a.jpg: {said}"


@pytest.fixture
def s3(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """moto's server with a bucket that holds the folder's files."""
    boto3 = pytest.importorskip("boto3")
    server_of_moto = pytest.importorskip("moto.server").ThreadedMotoServer(ip_address="127.0.0.1", port=0)
    server_of_moto.start()
    host, port = server_of_moto.get_host_and_port()
    for name, value in {
        "AWS_ENDPOINT_URL": f"http://{host}:{port}",
        "AWS_ACCESS_KEY_ID": "x",
        "AWS_SECRET_ACCESS_KEY": "x",
        "AWS_DEFAULT_REGION": "us-east-1",
    }.items():
        monkeypatch.setenv(name, value)
    client = boto3.client("s3")
    client.create_bucket(Bucket="bucket")
    for path, _ in samples_of(folder):
        client.upload_file(path, "bucket", f"train/{Path(path).relative_to(folder).as_posix()}")
    yield "s3://bucket/train"
    server_of_moto.stop()


def test_s3_gives_the_same_files(s3: str, folder: Path) -> None:
    samples = samples_of(folder)
    store = ObjectStore(s3, names_below(folder, samples))
    paths = [path for path, _ in samples]
    assert differing(store, paths) == []
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        assert pool.apply(differing, (store, paths)) == []
    with pytest.raises(OSError, match=r"^s3://bucket/train/none.jpg: HTTP 404 NoSuchKey: "):
        ObjectStore(s3, ["none.jpg"])(0)
