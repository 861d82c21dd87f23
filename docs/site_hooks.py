"""What `mkdocs.yml` cannot say: files from outside of docs/, the list of fixes, and no loading from a network."""

from __future__ import annotations

import posixpath
import re
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from mkdocs.config.defaults import MkDocsConfig
    from mkdocs.structure.files import Files
    from mkdocs.structure.pages import Page

ROOT = Path(__file__).parents[1]
PUBLISHED = {
    "CONTRIBUTING.md": "contributing.md",
    "CHANGELOG.md": "changelog.md",
    "reports/examples/two-cores/report.html": "examples/two-cores/report.html",
    "reports/examples/two-cores/run.json": "examples/two-cores/run.json",
    "reports/examples/h100/report.html": "examples/h100/report.html",
}
"""Files of the repository outside of docs/, and where the site has them."""

_FIXES = "reference/fixes/"
_LINK = re.compile(r"(\]\()([^)\s#:]+)((?:#[^)\s]*)?\))")
_LOADS = re.compile(r"<(?:script|link|img|iframe)\b[^>]*?(?:src|href)=[\"']?(?:https?:)?//[^>]*>")


def on_config(config: MkDocsConfig) -> MkDocsConfig:
    """Write out the fixes of the navigation: there is a page for each file."""
    config.nav = _with_fixes(config.nav)
    return config


def _with_fixes(nav: object) -> object:
    if isinstance(nav, list):
        return [_with_fixes(entry) for entry in nav]
    if isinstance(nav, dict):
        return {title: _with_fixes(entry) for title, entry in nav.items()}
    if nav != _FIXES:
        return nav
    ids = sorted(path.stem for path in (ROOT / "docs" / _FIXES).glob("*.md") if path.stem != "index")
    return [f"{_FIXES}index.md", *({name: f"{_FIXES}{name}.md"} for name in ids)]


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the files from outside of docs/."""
    from mkdocs.structure.files import File

    for source, target in PUBLISHED.items():
        files.append(File.generated(config, target, abs_src_path=str(ROOT / source)))
    return files


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:  # noqa: ARG001
    """Point the links of the repository at the pages of the site."""
    source = page.file.src_uri
    origin = next((path for path, target in PUBLISHED.items() if target == source), f"docs/{source}")
    here, there = posixpath.dirname(origin), posixpath.dirname(source)

    def moved(link: re.Match[str]) -> str:
        target = posixpath.normpath(posixpath.join(here, link[2]))
        found = PUBLISHED.get(target) or target.removeprefix("docs/")
        return link[1] + posixpath.relpath(found, there or ".") + link[3]

    return _LINK.sub(moved, markdown)


def on_post_page(output: str, page: Page, config: MkDocsConfig) -> str:  # noqa: ARG001
    """Refuse a page that loads anything from elsewhere."""
    from mkdocs.exceptions import PluginError

    if found := _LOADS.search(output):
        raise PluginError(f"{page.file.src_uri} loads from a network: {found[0]}")
    return output
