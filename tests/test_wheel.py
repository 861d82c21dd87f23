"""What installing costs an environment: benchmarks/installs.py has the whole of it."""

from __future__ import annotations

import subprocess
import sys
import zipfile
from pathlib import Path

import loaderbench

MOST_BYTES = 1_140_000
HEAVY = ("pandas", "plotly", "pyarrow", "scipy")


def test_the_package_is_small(tmp_path: Path) -> None:
    package = Path(loaderbench.__file__).parent
    with zipfile.ZipFile(tmp_path / "wheel.zip", "w", zipfile.ZIP_DEFLATED) as wheel:
        for file in package.rglob("*"):
            if file.is_file() and file.suffix != ".pyc":
                wheel.write(file, file.relative_to(package))
    assert (tmp_path / "wheel.zip").stat().st_size < MOST_BYTES


def test_what_records_a_script_imports_no_heavy_package() -> None:
    code = f"import sys, loaderbench.script.recorder\nprint([name for name in {HEAVY} if name in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"
