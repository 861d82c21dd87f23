"""The loader `webdataset` reads the shards of a copy from a web server, or as S3 serves them."""

from __future__ import annotations

import json
import shutil
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from itertools import islice
from pathlib import Path

import psutil
import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("webdataset")
from command_line import Cli  # noqa: E402
from loader_batches import built, drawn, stored, tiny_images  # noqa: E402
from served_files import served  # noqa: E402

from loaderbench.formats import FORMATS, StoredCopy, written_copy  # noqa: E402
from loaderbench.loaders.webdataset_loader import WebDataset  # noqa: E402

SUITE = """\
dataset: {{root: {root}}}
loader: {{batch_size: 4, shuffle: true}}
sweep: {{loader: [torch, webdataset], storage: [null, "{url}"], num_workers: [1]}}
consumer: {{kind: none}}
measure: {{rounds: 1, seconds: 0.2, verify: false}}
"""


@pytest.fixture
def copy(tmp_path: Path) -> StoredCopy:
    """40 tiny images in 20 shards."""
    (tmp_path / "train").mkdir()
    return written_copy(tiny_images(tmp_path / "train"), "tar", FORMATS["tar"], cache_dir=tmp_path)


@pytest.fixture(params=["http", "s3"])
def remote(request: pytest.FixtureRequest, copy: StoredCopy, monkeypatch: pytest.MonkeyPatch) -> Iterator[StoredCopy]:
    """The copy where it is served."""
    with served(copy.folder.parent) as (url, _):
        if request.param == "s3":
            pytest.importorskip("boto3")
            monkeypatch.setenv("AWS_ENDPOINT_URL", url)
            for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_DEFAULT_REGION"):
                monkeypatch.setenv(name, "us-east-1")
        base = "s3:/" if request.param == "s3" else url
        yield replace(copy, store=f"{base}/{copy.folder.name}")


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("workers", [0, 2])
def test_batches_are_those_of_the_local_copy(remote: StoredCopy, workers: int, tmp_path: Path) -> None:
    files = tiny_images(tmp_path / "train")
    local, far = (stored(files, copy, "to_tensor") for copy in (replace(remote, store=None), remote))
    images, labels = drawn(WebDataset(), far, 20, batch_size=2, num_workers=workers)
    assert labels.tolist() == [*range(40)]
    assert torch.equal(images, drawn(WebDataset(), local, 20, batch_size=2, num_workers=workers)[0])
    _, mixed = drawn(WebDataset(), far, 20, batch_size=2, num_workers=workers, shuffle=True)
    assert Counter(mixed.tolist()) == Counter(range(40))


def test_a_shard_is_one_request(copy: StoredCopy, tmp_path: Path) -> None:
    with served(copy.folder) as (url, handler):
        source = stored(tiny_images(tmp_path / "train"), replace(copy, store=url), "to_tensor")
        drawn(WebDataset(), source, 20, batch_size=2)
        assert handler.asked == [f"/{part.name}/shard.tar" for part in copy.parts]
        port = int(url.rpartition(":")[2])
        left = [one for one in psutil.Process().net_connections("tcp") if one.raddr and one.raddr.port == port]
        assert [one for one in left if one.status == psutil.CONN_ESTABLISHED] == []


@pytest.mark.parametrize("left", [None, 700, 1024])
def test_a_shard_that_is_not_there_or_shorter_is_named_by_its_address(
    remote: StoredCopy, left: int | None, tmp_path: Path
) -> None:
    shard = remote.parts[3] / "shard.tar"
    whole = shard.read_bytes()
    shard.unlink()
    if left is not None:
        shard.write_bytes(whole[:left])
    named = remote.store if left == 1024 else f"{remote.store}/{remote.parts[3].name}/shard.tar"
    source = stored(tiny_images(tmp_path / "train"), remote, "to_tensor")
    raises = pytest.raises(OSError, match=f"^{named}: .*upload {remote.folder} again$")
    with built(WebDataset(), source, batch_size=10) as batches, raises:
        list(islice(batches.iterable, 5))


def test_a_run_measures_files_and_shards_in_both_places(cli: Cli, tmp_path: Path, photos: Path) -> None:
    store = tmp_path / "store"
    shutil.copytree(photos, store)
    cache = str(tmp_path / "cache")
    with served(store, latency_s=0.02) as (url, _):
        (tmp_path / "s.yaml").write_text(SUITE.format(root=photos, url=url))
        refused = cli("run", "s.yaml", "--out", "refused", LOADERBENCH_CACHE=cache)
        [copy] = (tmp_path / "cache" / "formats" / "tar").iterdir()
        shutil.copytree(copy, store / "tar")
        done = cli("run", "s.yaml", "--out", "run", LOADERBENCH_CACHE=cache)
        first = store / "tar" / "part-00000" / "shard.tar"
        first.write_bytes(b"x" * first.stat().st_size)
        other = cli("run", "s.yaml", "--out", "other", LOADERBENCH_CACHE=cache)
    shard = copy / "part-00000" / "shard.tar"
    assert (refused.returncode, done.returncode, other.returncode) == (5, 0, 5), done.stderr
    said = f"loaderbench: storage {url}/tar/part-00000/shard.tar: "
    assert refused.stderr.splitlines()[-1] == f"{said}HTTP 404 File not found; upload {shard}"
    assert other.stderr.splitlines()[-1] == f"{said}not the same as {shard}; upload that"
    trials = [
        one for one in json.loads((tmp_path / "run" / "run.json").read_text())["trials"] if one["role"] == "sweep"
    ]
    assert {one["status"] for one in trials} == {"completed"}
    assert {(one["config"]["loader"], one["config"]["storage"]) for one in trials} == {
        (loader, place) for loader in ("torch", "webdataset") for place in (None, url)
    }
    waited = {one["config"]["loader"]: one["stages"]["read"]["wall_s"] for one in trials if one["config"]["storage"]}
    assert waited["webdataset"] < waited["torch"]
