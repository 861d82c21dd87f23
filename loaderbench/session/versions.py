"""Finds two versions of a user's code by name, checks out those that are revisions, and gives each its own place."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from loaderbench.errors import MissingError, UsageError
from loaderbench.records import Side, Version
from loaderbench.runner.placed import Place, installed_copies
from loaderbench.runner.scratch import claim_scratch
from loaderbench.session.git import NoRepositoryError, Repository, find_repository

WORKING_TREE, HEAD = "working tree", "HEAD"
_SUITES = (".yaml", ".yml")


@dataclass(frozen=True)
class Found:
    """A version: its description for the record, its suite file, and where its processes work and import from.

    `content` compares equal for two identical versions, if that is known.
    """

    version: Version
    suite: Path
    place: Place
    content: object

    def __str__(self) -> str:
        return f"{self.version.side} ({self.version})"


@contextmanager
def opened_versions(suite: Path, before: str | None, after: str | None) -> Iterator[tuple[Found, Found]]:
    """Find both versions; the folders of revisions are removed when the block ends.

    `after=None` is the working tree, `before=None` its last commit. Raises `UsageError`.
    """
    with tempfile.TemporaryDirectory(prefix="versions-", dir=claim_scratch(), ignore_cleanup_errors=True) as scratch:
        names = _VersionFinder(suite, Path(scratch).resolve())
        sides: tuple[tuple[Side, str | None], ...] = (("before", before or HEAD), ("after", after))
        first, second = (names.find(side, name) for side, name in sides)
        yield first.version_of(second), second.version_of(first)


def same_code(versions: tuple[Found, Found]) -> str:
    """A warning if both versions are the same code; empty otherwise."""
    before, after = versions
    if before.content != after.content:
        return ""
    return f"before and after are the same code ({before.version}); name another with --before"


@dataclass(frozen=True)
class _Root:
    """The folder and suite of a version, before the other version is known."""

    version: Version
    suite: Path
    root: Path
    folder: Path
    home: Path
    content: object

    def version_of(self, other: _Root) -> Found:
        place = Place(self.root, self.folder, self.home, other.root, installed_copies(self.home))
        return Found(self.version, self.suite, place, self.content)


class _VersionFinder:
    """Resolves the names of versions for a suite."""

    def __init__(self, suite: Path, scratch: Path) -> None:
        self._given, self._scratch = suite, scratch
        self._suite = suite.parent.resolve() / suite.name

    @cached_property
    def _repository(self) -> Repository:
        """The repository of the suite. Raises `UsageError` if it is not in one."""
        return find_repository(self._suite.parent)

    @cached_property
    def _home(self) -> Path:
        """The tree that user modules would be imported from: the git working tree, or else the working folder."""
        try:
            return self._repository.folder
        except (UsageError, MissingError):
            here = Path.cwd().resolve()
            return here if self._suite.is_relative_to(here) else self._suite.parent

    def find(self, side: Side, name: str | None) -> _Root:
        """Find one version. Raises `UsageError`, which names the flag."""
        flag = f"--{side} {name}" if name else f"--{side}"
        try:
            if name is None:
                return self._working_tree(side)
            path = Path(name)
            if path.suffix in _SUITES and path.is_file():
                return self._suite_file(side, name, path.parent.resolve() / path.name)
            if path.is_dir() and not self._is_revision(name):
                return self._folder(side, name, path.resolve())
            return self._revision(side, name)
        except NoRepositoryError as error:
            raise UsageError(f"{flag}: {self._missing_file(name) or error}") from None
        except UsageError as error:
            raise type(error)(f"{flag}: {error}") from None

    def _missing_file(self, name: str | None) -> str:
        """The file that does not exist, if the version was not meant to be a revision; empty if there is none."""
        if name and Path(name).suffix in _SUITES and not Path(name).exists():
            return "no such suite file"
        return "" if self._suite.exists() else f"{self._given}: no such file; `loaderbench init` writes a suite"

    def _is_revision(self, name: str) -> bool:
        """Whether the name is also a git revision. Raises `UsageError` if it is both a folder and a revision."""
        try:
            known = self._repository.commit_of(name) is not None
        except (UsageError, MissingError):
            return False
        if known:
            raise UsageError(f"both a folder and a revision; write ./{name} for the folder, heads/{name} for a branch")
        return False

    def _working_tree(self, side: Side) -> _Root:
        commit, changed = None, False
        try:
            commit = self._repository.commit_of(HEAD)
            changed = self._repository.has_changes()
        except (UsageError, MissingError):  # without a repository or git, changes are unknown
            pass
        content = self._content(commit) if commit and not changed else (self._home, self._suite)
        return self._root(side, WORKING_TREE, self._suite, self._home, content, commit=commit, changed=changed)

    def _suite_file(self, side: Side, name: str, file: Path) -> _Root:
        return self._root(side, name, file, self._home, (self._home, file))

    def _folder(self, side: Side, name: str, root: Path) -> _Root:
        here = Path.cwd().resolve()
        tops = [top for top in (here, self._home) if self._suite.is_relative_to(top)]
        candidates = [root / self._suite.relative_to(top) for top in tops] + [root / self._suite.name]
        file = self._suite if self._suite.is_relative_to(root) else None
        file = file or next((path for path in candidates if path.is_file()), None)
        if file is None:
            raise UsageError(f"no {candidates[0].relative_to(root)} in this folder; each version needs the suite")
        return self._root(side, name, file, root, (root, file))

    def _revision(self, side: Side, name: str) -> _Root:
        if (commit := self._repository.commit_of(name)) is None:
            raise UsageError(self._unknown(name))
        inside = self._suite_inside()
        root = self._scratch / side
        self._repository.extract(commit, root)
        if not (root / inside).is_file():
            raise UsageError(f"no {inside} in this revision ({commit[:7]}); each version needs the suite")
        return self._root(side, name, root / inside, root, self._content(commit), commit=commit)

    def _unknown(self, name: str) -> str:
        if name == HEAD:
            return "the repository has no commits; name a folder or a suite file"
        return "no such revision, folder or suite file; in CI, fetch it first (fetch-depth: 0)"

    def _suite_inside(self) -> Path:
        """The suite's path relative to its repository."""
        return self._suite.relative_to(self._repository.folder)

    def _content(self, commit: str) -> object:
        return self._repository.tree_of(commit), self._suite_inside()

    def _root(
        self,
        side: Side,
        name: str,
        suite: Path,
        root: Path,
        content: object,
        *,
        commit: str | None = None,
        changed: bool = False,
    ) -> _Root:
        inside = suite.relative_to(root) if suite.is_relative_to(root) else suite
        version = Version(side=side, name=name, suite_file=str(inside), commit=commit, has_changes=changed)
        return _Root(version, suite, root, self._folder_in(root), self._home, content)

    def _folder_in(self, root: Path) -> Path:
        """The working folder inside this version; the version's top level if it has no such folder."""
        here = Path.cwd().resolve()
        if root == self._home or not here.is_relative_to(self._home):
            return here
        folder = root / here.relative_to(self._home)
        return folder if folder.is_dir() else root
