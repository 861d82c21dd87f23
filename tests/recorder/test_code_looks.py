"""Stages that the calls of a stack suggest."""

from __future__ import annotations

import gzip
import zipfile
from pathlib import Path
from types import ModuleType

import pytest

from loaderbench.code_places import CodeFrame, CodeStack
from loaderbench.recorder.code_looks import stage_of


@pytest.mark.parametrize("library", [gzip, zipfile])
def test_decompression_is_no_read(library: ModuleType) -> None:
    file = str(library.__file__)
    lines = Path(file).read_text(encoding="utf-8").splitlines()
    decompressing = next(number for number, line in enumerate(lines, 1) if ".decompress(" in line)
    reading = next(number for number, line in enumerate(lines, 1) if "fp.read(" in line)
    caller = CodeFrame("/home/me/data.py", 1, "Data.__getitem__")
    found = [stage_of(CodeStack("", (caller, CodeFrame(file, line, "f")))) for line in (decompressing, reading)]
    assert found == ["sample", "read"]
