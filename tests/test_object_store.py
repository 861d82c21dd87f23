"""Files in an object store: real web servers on this machine; S3 is in `test_s3_store.py`."""

from __future__ import annotations

import json
import multiprocessing
import os
import pickle
import socket
import threading
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from http.server import ThreadingHTTPServer
from pathlib import Path

import pytest
from command_line import Cli
from served_files import Files, differing, samples_of, served, six_files

from loaderbench.datasets.folder_scan import scan_image_folder
from loaderbench.datasets.image_folder import ImageFolder
from loaderbench.errors import MissingError
from loaderbench.object_store import (
    ObjectStore,
    check_store,
    names_below,
    wrong_url,
)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return six_files(tmp_path)


def test_files_come_over_one_connection_for_each_thread(folder: Path) -> None:
    samples = samples_of(folder)
    paths = [path for path, _ in samples]
    with served(folder) as (url, handler):
        store = ObjectStore(url + "/", names_below(folder, samples))
        assert differing(store, paths) == []
        assert len(handler.connections) == 1
        with ThreadPoolExecutor(3) as pool:
            assert [*pool.map(lambda _: differing(store, paths), range(3))] == [[]] * 3
        assert len(handler.connections) <= 4


@pytest.mark.parametrize("method", ["fork", "spawn"])
def test_each_process_has_a_connection_of_its_own(method: str, folder: Path) -> None:
    samples = samples_of(folder)
    paths = [path for path, _ in samples]
    with served(folder) as (url, handler):
        store = ObjectStore(url, names_below(folder, samples))
        store(0)
        with multiprocessing.get_context(method).Pool(2) as pool:
            assert pool.starmap(differing, [(store, paths)] * 4) == [[]] * 4
        assert differing(pickle.loads(pickle.dumps(store)), paths) == []
        assert len(handler.connections) >= 3


def test_a_store_that_is_busy_is_asked_again(folder: Path) -> None:
    with served(folder, busy=2) as (url, handler):
        assert ObjectStore(url, ["1/1.jpg"])(0) == (folder / "1" / "1.jpg").read_bytes()
        assert handler.busy == 0


def test_a_store_that_stays_busy_is_one_line(folder: Path) -> None:
    with (
        served(folder, busy=99) as (url, _),
        pytest.raises(OSError, match=f"^{url}/1/1.jpg: HTTP 503 Service Unav"),
    ):
        ObjectStore(url, ["1/1.jpg"])(0)


def test_a_connection_that_the_store_has_closed_is_opened_again(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    class Closes(Files):
        def handle(self) -> None:
            self.handle_one_request()  # and no other one

    server = ThreadingHTTPServer(("127.0.0.1", 0), partial(Closes, directory=str(folder)))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    store = ObjectStore(f"http://127.0.0.1:{server.server_address[1]}", ["1/1.jpg"])
    monkeypatch.setattr("loaderbench.object_store.PAUSES_S", ())  # no retry is needed
    assert store(0) == store(0) == (folder / "1" / "1.jpg").read_bytes()
    server.shutdown()
    server.server_close()


def test_what_is_not_there_is_named_with_its_address(folder: Path) -> None:
    with (
        served(folder) as (url, _),
        pytest.raises(OSError, match=f"^{url}/1/none.jpg: HTTP 404 File not found$"),
    ):
        ObjectStore(url, ["1/none.jpg"])(0)


def test_nobody_listens() -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{free.getsockname()[1]}"
    with pytest.raises(MissingError, match=f"^storage {url}/a.jpg: Connection refused$"):
        check_store(url, ["a.jpg"])


def test_a_store_that_stalls_is_given_up(folder: Path) -> None:
    with socket.socket() as silent:
        silent.bind(("127.0.0.1", 0))
        silent.listen()
        url = f"http://127.0.0.1:{silent.getsockname()[1]}"
        with pytest.raises(OSError, match=rf"^{url}/a.jpg: no answer in 0\.2 s$"):
            ObjectStore(url, ["a.jpg"], timeout_s=0.2)(0)


@pytest.mark.parametrize(
    "value",
    [
        "/data",
        "ftp://host/x",
        "s3://",
        "http://",
        3,
        "",
        "http://[",
        "http://me:secret@host/x",
        "http://host/x?sig=1",
        " http://h/x",
        "S3://b/x",
        "s3://b ad/x",
        "s3://b/x#1",
        "http://h:port/x",
        "http://h:99999/x",
        "http://h:0/x",
        "http://a..b/x",
        "http://:80/x",
    ],
)
def test_what_is_no_address_of_a_store_is_refused(value: object) -> None:
    assert str(wrong_url(value)).startswith("expected null, http://HOST/FOLDER")


@pytest.mark.parametrize(
    "value",
    [
        None,
        "http://h",
        "http://h:80/x/",
        "http://[::1]:80/x",
        "https://h/a%20b",
        "s3://b_1/a b",
    ],
)
def test_addresses_of_stores_are_accepted(value: str | None) -> None:
    assert wrong_url(value) is None


def test_a_name_that_is_not_utf_8_is_asked_for_by_its_bytes(folder: Path) -> None:
    with served(folder) as (url, handler):
        with pytest.raises(OSError, match="HTTP 404"):
            ObjectStore(url, [os.fsdecode(b"a\xff.jpg")])(0)
        assert handler.asked == ["/a%FF.jpg"]


def test_s3_without_its_library_is_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("loaderbench.object_store.find_spec", lambda _: None)
    with pytest.raises(
        MissingError,
        match=r"^storage s3://b: boto3 is not installed; run `uv pip install boto3`$",
    ):
        check_store("s3://b", ["a.jpg"])


def test_a_folder_above_the_suite_has_the_same_names_in_a_store(tmp_path: Path, folder: Path) -> None:
    (tmp_path / "suites").mkdir()
    root = os.path.relpath(folder, tmp_path / "suites")
    assert root.startswith("..")
    for given in (root, f"{folder}/../{folder.name}/."):
        samples = scan_image_folder(tmp_path / "suites" / given).samples
        with served(folder) as (url, _):
            dataset = ImageFolder(root=given, storage=url)
            dataset.check_store(samples, tmp_path / "suites")
            store = dataset._objects(url, samples, tmp_path / "suites")
            assert differing(store, [path for path, _ in samples]) == []


SUITE = """\
dataset: {{root: {root}}}
loader: {{batch_size: 4}}
sweep: {{storage: [null, "{url}"], num_workers: [0, 2]}}
consumer: {{kind: none}}
measure: {{rounds: 1, seconds: 0.2, verify: false}}
"""


@pytest.mark.sleeping
def test_a_run_reads_from_both_and_names_the_latency(cli: Cli, tmp_path: Path, photos: Path) -> None:
    with served(photos, latency_s=0.03) as (url, _):
        (tmp_path / "s.yaml").write_text(SUITE.format(root=photos, url=url))
        done = cli("run", "s.yaml", "--out", "run")
        (tmp_path / "remote.yaml").write_text(SUITE.format(root=photos, url=url).replace("null, ", ""))
        assert cli("run", "remote.yaml", "--out", "remote").returncode == 0
    assert done.returncode == 0, done.stderr
    run = json.loads((tmp_path / "run" / "run.json").read_text())
    trials = [trial for trial in run["trials"] if trial["role"] == "sweep"]
    assert {trial["status"] for trial in trials} == {"completed"}
    for trial in trials:
        if trial["config"]["storage"] is not None:
            assert trial["stage_parts"]["read/reader"]["wall_s"] > 0.03
    remote = json.loads((tmp_path / "remote" / "run.json").read_text())
    assert (remote["verdict"]["stage"], remote["verdict"]["limit"]) == (
        "read",
        "storage_latency",
    )


def test_a_store_that_is_not_there_ends_the_run_before_its_trials(cli: Cli, tmp_path: Path, photos: Path) -> None:
    (tmp_path / "s.yaml").write_text(SUITE.format(root=photos, url="http://127.0.0.1:9/x"))
    done = cli("run", "s.yaml")
    assert done.returncode == 5
    assert done.stderr.splitlines()[-1].startswith("loaderbench: storage http://127.0.0.1:9/x/")


def test_a_store_that_is_gone_leaves_an_interrupted_run_as_it_was(cli: Cli, tmp_path: Path, photos: Path) -> None:
    with served(photos) as (url, _):
        (tmp_path / "s.yaml").write_text(SUITE.format(root=photos, url=url))
        assert cli("run", "s.yaml", "--out", "run").returncode == 0
    run = json.loads((tmp_path / "run" / "run.json").read_text())
    (tmp_path / "run" / "run.json").write_text(json.dumps({**run, "complete": False}))
    before = {path: path.read_bytes() for path in (tmp_path / "run").rglob("*") if path.is_file()}
    done = cli("run", "s.yaml", "--resume", "run")
    assert done.returncode == 5, done.stderr
    assert f"storage {url}/" in done.stderr
    assert {path: path.read_bytes() for path in before} == before


def test_loaders_that_read_by_themselves_are_refused(cli: Cli, tmp_path: Path, photos: Path) -> None:
    (tmp_path / "s.yaml").write_text(f"dataset: {{root: {photos}, storage: 'http://h/x'}}\nsweep: {{loader: [dali]}}")
    done = cli("check", "s.yaml")
    assert done.returncode == 2
    assert "dali reads local files only, not dataset.storage" in done.stderr
