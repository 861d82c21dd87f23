"""How soon the first trial starts on a folder of a million images, and how much memory that takes.

    python benchmarks/large_folder.py [--images N] [--classes N]

Creates the folder from hard links to generated photos, runs one trial on a sample of it and prints a table: the time
from the command's start to the start of the first trial, and the peak proportional memory (PSS) of all processes until
then, compared with a process that only imports torch and torchvision. Targets: 30 s, 500 MB.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import psutil
from rich.console import Console
from rich.table import Table

from loaderbench.datasets.photos import cached_photos

SUITE = """\
name: large
dataset: {root: folder}
sweep: {batch_size: [32], num_workers: [2]}
measure: {rounds: 1, seconds: 2}
"""


def make_folder(folder: Path, images: int, classes: int) -> None:
    photos = sorted(str(path) for path in cached_photos(images=512).rglob("*.jpg"))
    for number in range(classes):
        inside = folder / f"class_{number:04d}"
        inside.mkdir(parents=True)
        for index in range(number, images, classes):
            os.link(photos[index % len(photos)], f"{inside}/{index:08d}.jpg")


def pss_bytes(root: psutil.Process) -> int:
    total = 0
    for process in [root, *root.children(recursive=True)]:
        try:
            total += process.memory_full_info().pss
        except psutil.Error:
            continue
    return total


def watch(place: Path) -> tuple[float, int, int]:
    """Seconds to the first trial, and the peak of memory in bytes until then and until the end."""
    began_s = time.monotonic()
    command = [sys.executable, "-m", "loaderbench", "run", "large.yaml", "--out", "run", "--no-verify", "-q"]
    running = subprocess.Popen(command, cwd=place, stdout=subprocess.DEVNULL)
    root = psutil.Process(running.pid)
    first_s, before, peak = 0.0, 0, 0
    while running.poll() is None:
        peak = max(peak, pss_bytes(root))
        if not first_s and any((place / "run" / "logs").glob("*.log")):
            first_s, before = time.monotonic() - began_s, peak
        time.sleep(0.1)
    return first_s, before, peak


def import_bytes() -> int:
    """Proportional memory of a process that has only imported torch and torchvision."""
    code = "import psutil, os, torchvision; print(psutil.Process().memory_full_info().pss, flush=True); os._exit(0)"
    return int(subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--images", type=int, default=1_000_000)
    parser.add_argument("--classes", type=int, default=1_000)
    arguments = parser.parse_args()
    place = Path(tempfile.mkdtemp(dir=cached_photos(images=512).parent))  # hard links stay on one file system
    try:
        make_folder(place / "folder", arguments.images, arguments.classes)
        (place / "large.yaml").write_text(SUITE)
        first_s, before, peak = watch(place)
    finally:
        shutil.rmtree(place)
    imports = import_bytes()
    table = Table("what", "measured", "at most", title=f"{arguments.images:,} images in {arguments.classes:,} classes")
    table.add_row("first trial starts after", f"{first_s:.1f} s", "30 s")
    table.add_row("memory until then (PSS of all processes)", f"{before / 1e6:.0f} MB", "500 MB")
    table.add_row("  of which importing torch and torchvision", f"{imports / 1e6:.0f} MB", "")
    table.add_row("  of which this program and its list of files", f"{(before - imports) / 1e6:.0f} MB", "")
    table.add_row("memory at the peak, trial and workers included", f"{peak / 1e6:.0f} MB", "")
    Console().print(table)


if __name__ == "__main__":
    main()
