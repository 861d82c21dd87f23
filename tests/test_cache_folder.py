"""Where generated files are kept, with a home that can be written to and without one."""

from __future__ import annotations

import os
import stat
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from loaderbench.cache_folder import user_cache


@pytest.fixture
def temporary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder for temporary files, empty; nothing in the environment names a cache."""
    folder = tmp_path / "tmp"
    folder.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(folder))
    for name in ("LOADERBENCH_CACHE", "XDG_CACHE_HOME"):
        monkeypatch.delenv(name, raising=False)
    return folder


@pytest.mark.skipif(sys.platform in ("darwin", "win32"), reason="has another custom")
def test_a_home_that_can_be_written_to_keeps_the_cache(
    tmp_path: Path, temporary: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    assert user_cache() == tmp_path / "home" / ".cache" / "loaderbench"
    assert user_cache().is_dir()
    assert not list(temporary.iterdir())


def test_a_home_that_holds_no_folder_is_replaced_by_a_temporary_one_of_this_user(
    tmp_path: Path, temporary: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").touch()
    monkeypatch.setenv("HOME", str(tmp_path / "file"))
    found = user_cache()
    assert found.parent == temporary
    assert stat.S_IMODE(found.stat().st_mode) == 0o700
    assert user_cache() == found


def test_a_link_that_another_has_put_in_its_place_is_not_followed(
    tmp_path: Path, temporary: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").touch()
    monkeypatch.setenv("HOME", str(tmp_path / "file"))
    usual, elsewhere = user_cache(), tmp_path / "elsewhere"
    elsewhere.mkdir()
    usual.rmdir()
    usual.symlink_to(elsewhere)
    assert user_cache() != usual
    assert user_cache().parent == temporary


def test_a_cache_that_was_chosen_is_not_replaced(
    tmp_path: Path, temporary: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LOADERBENCH_CACHE", str(tmp_path / "file" / "chosen"))
    assert user_cache() == tmp_path / "file" / "chosen"


@pytest.mark.skipif(sys.platform in ("darwin", "win32"), reason="has another custom")
def test_a_relative_folder_stays_the_same_in_another_working_directory(
    tmp_path: Path, temporary: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The specification of `XDG_CACHE_HOME` calls a relative one invalid."""
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.setenv("XDG_CACHE_HOME", "relative")
    assert user_cache() == tmp_path / "home" / ".cache" / "loaderbench"
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("LOADERBENCH_CACHE", "chosen")
    assert user_cache() == tmp_path / "chosen"


_PHOTOS = "from loaderbench.datasets.photos import cached_photos; print(cached_photos(images=2))"


def test_photos_are_generated_where_the_home_is_mounted_read_only(tmp_path: Path) -> None:
    home, places = tmp_path / "home", tmp_path / "tmp"
    home.mkdir()
    places.mkdir()
    mount = f"mount -t tmpfs -o ro tmpfs {home} && exec {sys.executable} -c '{_PHOTOS}'"
    kept = {name: value for name, value in os.environ.items() if name not in ("LOADERBENCH_CACHE", "XDG_CACHE_HOME")}
    ended = subprocess.run(
        ["unshare", "--mount", "--map-root-user", "sh", "-c", mount],
        env={**kept, "HOME": str(home), "TMPDIR": str(places)},
        capture_output=True,
        text=True,
        check=False,
    )
    if "unshare" in ended.stderr or "mount" in ended.stderr:
        pytest.skip(f"no mount namespace: {ended.stderr.strip()}")
    assert ended.returncode == 0, ended.stderr
    folder = Path(ended.stdout.strip())
    assert folder.is_relative_to(places)
    assert len(list(folder.rglob("*.jpg"))) == 2
