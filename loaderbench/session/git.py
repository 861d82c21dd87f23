"""Read-only git commands on the user's repository."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from loaderbench.errors import MissingError, UsageError

_SET_IN_HOOKS = ("GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE", "GIT_PREFIX", "GIT_COMMON_DIR")
_TEMPORARY_INDEX = ("-c", "core.splitIndex=false", "-c", "core.sparseCheckout=false", "-c", "core.fsmonitor=false")
"""Options for a temporary index: one complete file that lists every file of the revision."""

_SUBMODULE = "160000"
_RUN_FOLDERS = ":(exclude,top,glob)**/reports/**"


@dataclass(frozen=True)
class Repository:
    """A git working tree; `folder` is its top level."""

    folder: Path

    def commit_of(self, revision: str) -> str | None:
        """The full hash of a commit; `None` if the revision does not exist."""
        found = _git(self.folder, "rev-parse", "--verify", "--quiet", "--end-of-options", f"{revision}^{{commit}}")
        return found.stdout.strip() if found.returncode == 0 else None

    def tree_of(self, commit: str) -> str:
        """The tree hash of a commit; commits with the same content share it."""
        return _output(self.folder, "rev-parse", "--verify", f"{commit}^{{tree}}").strip()

    def has_changes(self) -> bool:
        """Whether the working tree differs from its commit; ignored files and run folders do not count."""
        arguments = ("--no-optional-locks", "status", "--porcelain", "--", ".", _RUN_FOLDERS)
        return bool(_output(self.folder, *arguments))

    def extract(self, commit: str, folder: Path) -> None:
        """Write all files of a commit, with its submodules, to a new folder, through a temporary index.

        Unlike `git worktree`, this leaves no entry in the repository. Unlike `git archive`, it includes every file and
        applies filters such as Git LFS. Raises `UsageError` for a submodule that is not checked out.
        """
        folder.mkdir(parents=True, exist_ok=True)
        index = folder.with_name(f"{folder.name}.index")
        environment = {"GIT_INDEX_FILE": str(index)}
        _output(self.folder, *_TEMPORARY_INDEX, "read-tree", commit, more=environment)
        _output(
            self.folder,
            *_TEMPORARY_INDEX,
            "checkout-index",
            "--all",
            "--force",
            f"--prefix={folder}{os.sep}",
            more=environment,
        )
        index.unlink(missing_ok=True)
        for path, wanted in self._submodules(commit):
            inner = Repository(self.folder / path)
            if not (inner.folder / ".git").exists() or inner.commit_of(wanted) is None:
                raise UsageError(f"submodule {path} is not checked out; run `git submodule update --init --recursive`")
            inner.extract(wanted, folder / path)

    def _submodules(self, commit: str) -> Iterator[tuple[str, str]]:
        """The path and commit of each submodule."""
        for line in _output(self.folder, "ls-tree", "-r", "-z", "--full-tree", commit).split("\0"):
            mode, _, rest = line.partition(" ")
            if mode == _SUBMODULE:
                name, _, path = rest.partition("\t")
                yield path, name.split()[-1]


class NoRepositoryError(UsageError):
    """A folder is not in a git repository."""


def find_repository(folder: Path) -> Repository:
    """The repository that contains a folder. Raises `UsageError` if there is none, or if it has no working tree."""
    while not folder.is_dir() and folder != folder.parent:
        folder = folder.parent
    found = _git(folder, "rev-parse", "--show-toplevel")
    if found.returncode == 0 and found.stdout.strip():
        return Repository(Path(found.stdout.rstrip("\n")).resolve())
    if _git(folder, "rev-parse", "--is-bare-repository").stdout.strip() == "true":
        raise UsageError(f"{folder} is a bare repository; run ab in a clone with a working tree")
    message = _reason(found.stderr)
    if "not a git repository" in message:
        raise NoRepositoryError(f"{folder} is not in a git repository; name a folder or a suite file instead")
    raise UsageError(f"git: {message}")


def _output(folder: Path, *arguments: str, more: Mapping[str, str] | None = None) -> str:
    """Run git and return its output. Raises `UsageError` with git's error message if it fails."""
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
    """The first line of stderr that says what went wrong."""
    lines = [line.strip() for line in stderr.splitlines() if line.strip()]
    fatal = [line for line in lines if line.startswith(("fatal: ", "error: "))]
    return next(iter(fatal or lines), "failed").removeprefix("fatal: ").removeprefix("error: ")
