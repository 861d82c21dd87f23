"""The loader `webdataset` reads the shards of a copy from a web server, or as S3 serves them."""

from __future__ import annotations

import json
import shutil
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from itertools import islice
from pathlib import Path
from typing import IO, Any

import psutil
import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("webdataset")
from command_line import Cli  # noqa: E402
from loader_batches import built, drawn, stored, tiny_images  # noqa: E402
from served_files import Files, served, set_credentials  # noqa: E402

from loaderbench.errors import MissingError  # noqa: E402
from loaderbench.formats import FORMATS, StoredCopy, written_copy  # noqa: E402
from loaderbench.loaders.webdataset_loader import WebDataset  # noqa: E402
from loaderbench.object_store import check_copy  # noqa: E402
from loaderbench.remedies.program import python_program  # noqa: E402

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
            set_credentials(monkeypatch)
            monkeypatch.setenv("AWS_ENDPOINT_URL", url)
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
    raises = pytest.raises(OSError, match=f"^{named}: [^@]*; upload {remote.folder} again$")
    with built(WebDataset(), source, batch_size=10) as batches, raises:
        list(islice(batches.iterable, 5))


def test_a_run_measures_files_and_shards_in_both_places(cli: Cli, tmp_path: Path, photos: Path) -> None:
    store = tmp_path / "store"
    shutil.copytree(photos, store)
    cache = str(tmp_path / "cache")
    with served(store) as (url, handler):
        (tmp_path / "s.yaml").write_text(SUITE.format(root=photos, url=url))
        refused = cli("run", "s.yaml", "--out", "refused", LOADERBENCH_CACHE=cache)
        [copy] = (tmp_path / "cache" / "formats" / "tar").iterdir()
        shutil.copytree(copy, store / "tar")
        handler.asked.clear()
        done = cli("run", "s.yaml", "--out", "run", LOADERBENCH_CACHE=cache)
        first = store / "tar" / "part-00000" / "shard.tar"
        first.write_bytes(b"x" * first.stat().st_size)
        other = cli("run", "s.yaml", "--out", "other", LOADERBENCH_CACHE=cache)
    assert (refused.returncode, done.returncode, other.returncode) == (5, 0, 5), done.stderr
    said = f"loaderbench: storage {url}/tar/part-00000/shard.tar: "
    upload = f"upload {copy} to {url}/tar"
    assert refused.stderr.splitlines()[-1] == f"{said}HTTP 404 File not found; {upload}"
    assert other.stderr.splitlines()[-1] == f"{said}differs from {copy}/part-00000/shard.tar; {upload} again"
    trials = [one for one in saved(tmp_path / "run")["trials"] if one["role"] == "sweep"]
    assert {one["status"] for one in trials} == {"completed"}
    assert {(one["config"]["loader"], one["config"]["storage"]) for one in trials} == {
        (loader, place) for loader in ("torch", "webdataset") for place in (None, url)
    }
    shards = {path for path in handler.asked if path.startswith("/tar/")}
    assert shards <= {f"/tar/{part.name}/shard.tar" for part in copy.glob("part-*") if part.is_dir()}
    assert len(shards) > 2
    files = set(handler.asked) - shards
    assert files
    assert files <= {f"/{path.relative_to(photos).as_posix()}" for path in photos.rglob("*.jpg")}


def test_a_store_with_nothing_but_shards_is_enough_for_their_loader(cli: Cli, tmp_path: Path, photos: Path) -> None:
    files = [(str(path), label) for label, path in _files_with_labels(photos)]
    copy = written_copy(files, "tar", FORMATS["tar"], cache_dir=tmp_path / "cache")
    (tmp_path / "store").mkdir()
    (tmp_path / "store" / "tar").symlink_to(copy.folder)
    with served(tmp_path / "store") as (url, handler):
        suite = SUITE.format(root=photos, url=url).replace("torch, ", "").replace("null, ", "")
        (tmp_path / "s.yaml").write_text(suite)
        done = cli("run", "s.yaml", "--out", "run", LOADERBENCH_CACHE=str(tmp_path / "cache"))
    assert done.returncode == 0, done.stderr
    assert {path.split("/")[1] for path in handler.asked} == {"tar"}
    assert {trial["status"] for trial in saved(tmp_path / "run")["trials"]} == {"completed"}


def test_the_program_says_which_shards_were_measured() -> None:
    options = {"kind": "image_folder", "root": "train", "storage": "s3://b/train"}
    program = python_program({"loader": "webdataset", "num_workers": 2}, {"batch_size": 4}, options)
    assert "# measured with the shards in s3://b/train/tar; these are local ones" in program
    assert program.count("s3://b/train") == 1


@pytest.mark.parametrize("sent_bytes", [700, 1_500, 100_000], ids=["in a header", "after an image", "in an image"])
def test_a_connection_that_breaks_within_a_shard_is_named(sent_bytes: int, photos: Path, tmp_path: Path) -> None:
    class Breaks(Files):
        def copyfile(self, source: IO[bytes], outputfile: IO[bytes]) -> None:
            outputfile.write(source.read(sent_bytes))
            self.close_connection = True

    files = [(str(path), number) for number, path in enumerate(sorted(photos.rglob("*.jpg")))]
    copy = written_copy(files, "tar", FORMATS["tar"], cache_dir=tmp_path)
    with served(copy.folder, Breaks) as (url, _):
        source = stored(files, replace(copy, store=url))
        named = f"^{url}/part-00000/shard.tar: connection lost: [0-9,]+ bytes are missing$"
        with built(WebDataset(), source, batch_size=2) as batches, pytest.raises(OSError, match=named):
            list(islice(batches.iterable, 5))
        if sent_bytes < 65_536:
            with pytest.raises(MissingError, match=f"^storage {named[1:]}"):
                check_copy(url, copy.folder, copy.files[:1])


def saved(folder: Path) -> Any:
    return json.loads((folder / "run.json").read_text())


def _files_with_labels(photos: Path) -> list[tuple[int, Path]]:
    """As an image folder lists them."""
    classes = sorted(path.name for path in photos.iterdir() if path.is_dir())
    return [(classes.index(path.parent.name), path) for path in sorted(photos.rglob("*.jpg"))]
