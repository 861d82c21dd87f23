"""What is asked of git: a user's revisions are read, and nothing in their repository changes."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from loaderbench.errors import MissingError, UsageError

_SET_IN_HOOKS = ("GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE", "GIT_PREFIX", "GIT_COMMON_DIR")
_ALONE = ("-c", "core.splitIndex=false", "-c", "core.sparseCheckout=false", "-c", "core.fsmonitor=false")
"""An index of our own is one whole file, and holds every file of a revision."""

_SUBMODULE = "160000"
_RUN_FOLDERS = ":(exclude,top,glob)**/reports/**"


@dataclass(frozen=True)
class Repository:
    """A working tree of git; `folder` is its top."""

    folder: Path

    def commit_of(self, revision: str) -> str | None:
        """The full name of a commit; `None` where there is none of this name."""
        found = _git(self.folder, "rev-parse", "--verify", "--quiet", "--end-of-options", f"{revision}^{{commit}}")
        return found.stdout.strip() if found.returncode == 0 else None

    def tree_of(self, commit: str) -> str:
        """What names the content of a commit: two with the same content have the same."""
        return _asked(self.folder, "rev-parse", "--verify", f"{commit}^{{tree}}").strip()

    def has_changes(self) -> bool:
        """Whether the working tree differs from its commit; ignored files and run folders do not count."""
        asked = ("--no-optional-locks", "status", "--porcelain", "--", ".", _RUN_FOLDERS)
        return bool(_asked(self.folder, *asked))

    def extract(self, commit: str, folder: Path) -> None:
        """Write all files of a commit to a new folder, with its submodules, through an index of its own.

        Unlike a worktree, it leaves no entry in the repository. Unlike an archive, it has every file, with filters
        such as that of Git LFS applied. Raises `UsageError` for a submodule that is not checked out here.
        """
        folder.mkdir(parents=True, exist_ok=True)
        index = folder.with_name(f"{folder.name}.index")
        own = {"GIT_INDEX_FILE": str(index)}
        _asked(self.folder, *_ALONE, "read-tree", commit, more=own)
        _asked(self.folder, *_ALONE, "checkout-index", "--all", "--force", f"--prefix={folder}{os.sep}", more=own)
        index.unlink(missing_ok=True)
        for path, wanted in self._submodules(commit):
            inner = Repository(self.folder / path)
            if not (inner.folder / ".git").exists() or inner.commit_of(wanted) is None:
                raise UsageError(f"submodule {path} is not checked out; run `git submodule update --init --recursive`")
            inner.extract(wanted, folder / path)

    def _submodules(self, commit: str) -> Iterator[tuple[str, str]]:
        """The path of each, and its commit."""
        for line in _asked(self.folder, "ls-tree", "-r", "-z", "--full-tree", commit).split("\0"):
            mode, _, rest = line.partition(" ")
            if mode == _SUBMODULE:
                name, _, path = rest.partition("\t")
                yield path, name.split()[-1]


def find_repository(folder: Path) -> Repository:
    """The repository that a folder is in. Raises `UsageError` where there is none, or none with a working tree."""
    while not folder.is_dir() and folder != folder.parent:
        folder = folder.parent
    found = _git(folder, "rev-parse", "--show-toplevel")
    if found.returncode == 0 and found.stdout.strip():
        return Repository(Path(found.stdout.rstrip("\n")).resolve())
    if _git(folder, "rev-parse", "--is-bare-repository").stdout.strip() == "true":
        raise UsageError(f"{folder} is a bare repository; run ab in a clone with a working tree")
    said = _reason(found.stderr)
    if "not a git repository" in said:
        raise UsageError(f"{folder} is not in a git repository; name a folder or a suite file instead")
    raise UsageError(f"git: {said}")


def _asked(folder: Path, *arguments: str, more: Mapping[str, str] | None = None) -> str:
    """What git answers. Raises `UsageError` with what it says where it cannot."""
    found = _git(folder, *arguments, more=more)
    if found.returncode != 0:
        raise UsageError(f"git in {folder}: {_reason(found.stderr)}")
    return found.stdout


def _git(folder: Path, *arguments: str, more: Mapping[str, str] | None = None) -> subprocess.CompletedProcess[str]:
    inherited = {name: value for name, value in os.environ.items() if name not in _SET_IN_HOOKS}
    try:
        return subprocess.run(
            ["git", "-C", str(folder), *arguments],
            env={**inherited, "LC_ALL": "C", **(more or {})},
            capture_output=True,
            encoding="utf-8",
            errors="surrogateescape",
            check=False,
        )
    except FileNotFoundError:
        raise MissingError("git is not installed; install it, or name folders or suite files") from None


def _reason(stderr: str) -> str:
    """The first line that says what went wrong."""
    lines = [line.strip() for line in stderr.splitlines() if line.strip()]
    fatal = [line for line in lines if line.startswith(("fatal: ", "error: "))]
    return next(iter(fatal or lines), "failed").removeprefix("fatal: ").removeprefix("error: ")
