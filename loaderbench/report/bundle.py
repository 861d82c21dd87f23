"""plotly's own bundle from the installed package, and any large text, compressed so that a page can carry it."""

from __future__ import annotations

import base64
import functools
import gzip
import importlib.resources
import json
import re
from typing import Any

_PLOTLY = "package_data/plotly.min.js"
_UNSAFE = re.compile("[<>&\u2028\u2029\ud800-\udfff]")
_LEVEL = 7  # beyond it a tenth of a per cent is won for twice the time


@functools.cache
def plotly_packed() -> str:
    """The bundle as `pack` writes it: 4.8 MB of script are 2.0 MB of page. Once per process."""
    return pack((importlib.resources.files("plotly") / _PLOTLY).read_bytes())


def pack(content: bytes) -> str:
    """Gzip in base64, without a time stamp: the same run draws the same page."""
    return base64.b64encode(gzip.compress(content, _LEVEL, mtime=0)).decode("ascii")


def pack_json(value: Any) -> str:
    """A value as packed JSON."""
    return pack(json.dumps(value, allow_nan=False, separators=(",", ":")).encode())


def inline_json(value: Any) -> str:
    """JSON that can stand inside a `<script>` element: nothing in it ends the element, a line of script, or UTF-8."""
    text = json.dumps(value, allow_nan=False, ensure_ascii=False, separators=(",", ":"))
    return _UNSAFE.sub(lambda found: f"\\u{ord(found[0]):04x}", text)
