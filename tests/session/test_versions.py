"""Names of versions: what they mean, where their code is, and that a user's repository is left as it was."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from loaderbench.errors import MissingError, UsageError
from loaderbench.session.versions import Found, opened_versions, same_code

SUITE = Path("bench/suite.yaml")


def git(folder: Path, *arguments: str) -> str:
    who = ("-c", "user.name=a", "-c", "user.email=a@b", "-c", "protocol.file.allow=always")
    return subprocess.run(
        ["git", *who, *arguments], cwd=folder, check=True, capture_output=True, text=True
    ).stdout.strip()


def make(folder: Path, **files: str) -> Path:
    """A repository with one commit."""
    folder.mkdir()
    git(folder, "init", "-q", "-b", "main")
    for name, text in {"bench/suite.yaml": "", **files}.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    git(folder, "add", "-A")
    git(folder, "commit", "-qm", "one")
    return folder


@pytest.fixture
def repository(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The working folder; its data.py has `1` in the first commit, `2` in the second, and `3` in the working tree."""
    folder = make(tmp_path / "repository", **{"data.py": "1"})
    git(folder, "tag", "first")
    (folder / "data.py").write_text("2")
    git(folder, "commit", "-qam", "two")
    (folder / "data.py").write_text("3")
    monkeypatch.chdir(folder)
    return folder


def code(version: Found) -> str:
    return (version.place.root / "data.py").read_text()


def state(folder: Path) -> tuple[str, ...]:
    """All that git knows of a repository, and the files that it keeps it in."""
    files = sorted(str(path) for path in (folder / ".git").rglob("*") if path.is_file())
    asked = (("status", "--porcelain"), ("worktree", "list"), ("for-each-ref",), ("stash", "list"))
    return (*(git(folder, *one) for one in asked), *files)


def test_a_version_is_the_last_commit_before_and_the_working_tree_after(repository: Path) -> None:
    with opened_versions(SUITE, None, None) as (before, after):
        assert (code(before), code(after)) == ("2", "3")
        assert after.place.root == repository
        assert before.suite == before.place.root / SUITE
        assert str(before) == f"before (HEAD ({git(repository, 'rev-parse', 'HEAD')[:7]}))"
        assert str(after).endswith("+))")
        assert not same_code((before, after))


def test_a_repository_is_left_as_it_was_and_checkouts_are_removed(repository: Path) -> None:
    before = state(repository)
    with opened_versions(SUITE, "first", "main") as versions:
        assert [code(version) for version in versions] == ["1", "2"]
        folders = [version.place.root for version in versions]
    assert state(repository) == before
    assert not any(folder.exists() for folder in folders)


def test_checkouts_are_removed_when_it_is_interrupted(repository: Path) -> None:
    opened = opened_versions(SUITE, "first", None)
    folder = opened.__enter__()[0].place.root
    assert folder.exists()
    stop = KeyboardInterrupt()
    assert not opened.__exit__(KeyboardInterrupt, stop, None)
    assert not folder.exists()
    assert (repository / "data.py").read_text() == "3"


def test_a_working_folder_is_that_of_the_version(repository: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(repository / "bench")
    with opened_versions(Path("suite.yaml"), "first", None) as (before, after):
        assert before.place.folder == before.place.root / "bench"
        assert after.place.folder == repository / "bench"


def test_files_that_an_archive_leaves_out_are_there(repository: Path) -> None:
    (repository / ".gitattributes").write_text("data.py export-ignore\n")
    git(repository, "add", ".gitattributes")
    git(repository, "commit", "-qm", "three")
    with opened_versions(SUITE, "main", None) as (before, _):
        assert code(before) == "2"


def test_folders_and_suite_files_are_versions(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("old", "new"):
        (tmp_path / name / "bench").mkdir(parents=True)
        (tmp_path / name / SUITE).write_text("")
    monkeypatch.chdir(tmp_path / "new")
    with opened_versions(SUITE, "../old", str(tmp_path / "new")) as (before, after):
        assert before.suite == tmp_path / "old" / SUITE
        assert after.suite == tmp_path / "new" / SUITE
        assert before.place.foreign == after.place.root
    with opened_versions(SUITE, "../old/bench/suite.yaml", None) as (before, after):
        assert before.suite == tmp_path / "old" / SUITE
        assert before.place.root == after.place.root == tmp_path / "new"


def test_the_same_code_twice_is_noticed(repository: Path) -> None:
    with opened_versions(SUITE, "HEAD", "main") as versions:
        assert "same code" in same_code(versions)
    git(repository, "checkout", "-q", "--", "data.py")
    (repository / "reports").mkdir()
    (repository / "reports" / "run.json").write_text("{}")
    with opened_versions(SUITE, None, None) as versions:
        assert "same code" in same_code(versions), "a run folder changes no code"
    with opened_versions(SUITE, "first", None) as versions:
        assert not same_code(versions)


def test_submodules_are_in_a_revision_where_they_are_checked_out(repository: Path, tmp_path: Path) -> None:
    inner = make(tmp_path / "inner", **{"inside.py": "inner"})
    git(repository, "submodule", "--quiet", "add", str(inner), "lib/inner")
    git(repository, "commit", "-qm", "with a submodule")
    with opened_versions(SUITE, "HEAD", None) as (before, _):
        assert (before.place.root / "lib/inner/inside.py").read_text() == "inner"
    git(repository, "submodule", "--quiet", "deinit", "--force", "lib/inner")
    with pytest.raises(UsageError, match="--before HEAD: submodule lib/inner is not checked out; run `git submodule"):
        opened_versions(SUITE, "HEAD", None).__enter__()


@pytest.mark.parametrize(
    ("before", "after", "said"),
    [
        ("nowhere", None, "--before nowhere: no such revision, folder or suite file"),
        (None, "nowhere", "--after nowhere: no such revision"),
        ("--all", None, "--before --all: no such revision"),
        ("bench", None, "--before bench: both a folder and a revision; write ./bench"),
        ("empty", None, "--before empty: no bench/suite.yaml in this folder; each version needs the suite"),
        ("without", None, "--before without: no bench/suite.yaml in this revision"),
    ],
)
def test_a_name_that_means_nothing_is_one_line(repository: Path, before: str, after: str, said: str) -> None:
    git(repository, "branch", "bench", "first")
    git(repository, "checkout", "-q", "--orphan", "without")
    git(repository, "commit", "-qm", "no suite", "--", "data.py")
    git(repository, "checkout", "-qf", "main")
    (repository / "empty").mkdir()
    with pytest.raises(UsageError) as raised:
        opened_versions(SUITE, before, after).__enter__()
    assert str(raised.value).startswith(said)
    assert "\n" not in str(raised.value)


def test_without_a_repository_a_revision_cannot_be_meant(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "suite.yaml").write_text("")
    monkeypatch.chdir(tmp_path)
    with pytest.raises(UsageError, match=r"--before HEAD: .* is not in a git repository; name a folder"):
        opened_versions(Path("suite.yaml"), None, None).__enter__()


def test_a_file_that_does_not_exist_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(
        UsageError, match=r"^--before HEAD: suite.yaml: no such file; `loaderbench init` writes a suite$"
    ):
        opened_versions(Path("suite.yaml"), None, None).__enter__()
    (tmp_path / "suite.yaml").write_text("")
    with pytest.raises(UsageError, match=r"^--before other.yaml: no such suite file$"):
        opened_versions(Path("suite.yaml"), "other.yaml", None).__enter__()


def test_suite_files_and_folders_need_no_git(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("a", "b"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "suite.yaml").write_text(f"name: {name}")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PATH", str(tmp_path))
    for before, after in (("a/suite.yaml", "b/suite.yaml"), ("a", "b")):
        with opened_versions(Path("a/suite.yaml"), before, after) as found:
            assert [one.suite.parent.name for one in found] == ["a", "b"]
    with pytest.raises(MissingError, match="git is not installed"):
        opened_versions(Path("a/suite.yaml"), "v1", "b").__enter__()


def test_a_bare_repository_and_one_without_commits_say_so(
    repository: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    git(tmp_path, "clone", "-q", "--bare", str(repository), "bare")
    monkeypatch.chdir(tmp_path / "bare")
    with pytest.raises(UsageError, match="is a bare repository; run ab in a clone with a working tree"):
        opened_versions(SUITE, "main", "first").__enter__()
    (tmp_path / "new").mkdir()
    git(tmp_path / "new", "init", "-q")
    monkeypatch.chdir(tmp_path / "new")
    with pytest.raises(UsageError, match="the repository has no commits"):
        opened_versions(SUITE, None, None).__enter__()
