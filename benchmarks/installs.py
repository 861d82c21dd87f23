"""Check that the wheel changes nothing in existing environments.

    uv run python benchmarks/installs.py [--only 3.10,3.13]

For each Python, an environment with an older torch and NumPy is created. pip adds this clone's wheel, and a small
script runs under `loaderbench profile`. Prints a table (Markdown): versions that the wheel changed, the result of `pip
check`, and heavy modules that the script's process had imported when it ended. Downloads several GB for each torch that
uv has not cached.
"""

from __future__ import annotations

import argparse
import json
import subprocess
from pathlib import Path
from tempfile import TemporaryDirectory

ROOT = Path(__file__).parents[1]
ENVIRONMENTS = {
    "3.10": ("torch==2.4.1", "torchvision==0.19.1", "numpy==1.26.4", "pillow==10.4.0"),
    "3.11": ("torch==2.6.0", "torchvision==0.21.0", "numpy==1.26.4", "pandas==2.1.4"),
    "3.12": ("torch==2.8.0", "torchvision==0.23.0", "numpy==2.1.3", "plotly==5.24.1"),
    "3.13": ("torch==2.11.0", "torchvision==0.26.0", "rich==13.9.4", "transformers"),
}
MOST_BYTES = 1_100_000
HEAVY = ("pandas", "plotly", "scipy", "pyarrow")
SCRIPT = f"""\
import json, sys, torch
from torch.utils.data import DataLoader, TensorDataset
if __name__ == "__main__":
    data = TensorDataset(torch.zeros(4000, 8), torch.zeros(4000))
    batches = sum(1 for _ in DataLoader(data, batch_size=8, num_workers=2))
    print(json.dumps([batches, [name for name in {HEAVY} if name in sys.modules]]))
"""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", default=",".join(ENVIRONMENTS), help="versions of Python, with commas")
    asked = parser.parse_args()
    with TemporaryDirectory() as place:
        wheel = built(Path(place))
        size = wheel.stat().st_size
        print(f"wheel: {size / 1000:.0f} kB, at most {MOST_BYTES / 1000:.0f}: {'ok' if size <= MOST_BYTES else 'NO'}\n")
        print("| Python | torch | changed | pip check | script under profile | imported before its end | ok |")
        print("| --- | --- | --- | --- | --- | --- | --- |", flush=True)
        for python in asked.only.split(","):
            print(row(python, wheel, Path(place) / python), flush=True)


def built(place: Path) -> Path:
    run("uv", "build", "--wheel", "--out-dir", str(place), str(ROOT))
    return next(place.glob("*.whl"))


def row(python: str, wheel: Path, place: Path) -> str:
    """Measure one environment: before the wheel, with the wheel, and while profiling."""
    packages = ENVIRONMENTS[python]
    run("uv", "venv", "--seed", "--python", python, str(place))
    executable = str(place / "bin" / "python")
    run("uv", "pip", "install", "--python", executable, *packages)
    before = versions(executable)
    run(executable, "-m", "pip", "install", "--quiet", str(wheel))
    after = versions(executable)
    changed = [f"{name} {old} -> {after.get(name)}" for name, old in before.items() if after.get(name) != old]
    checked = attempt(executable, "-m", "pip", "check")
    (place / "train.py").write_text(SCRIPT)
    done = attempt(str(place / "bin" / "loaderbench"), "profile", "--out", "run", "train.py", cwd=place)
    batches, imported = json.loads(done.stdout.splitlines()[-1]) if done.returncode == 0 else (None, ["?"])
    well = not changed and checked.returncode == 0 and batches == 500 and not imported and seen(place)
    cells = (
        python,
        packages[0].partition("==")[2],
        ", ".join(changed) or "nothing",
        "ok" if checked.returncode == 0 else checked.stdout.strip(),
        "recorded" if batches == 500 and seen(place) else done.stderr.strip()[-300:],
        ", ".join(imported) or "none",
        "yes" if well else "NO",
    )
    return f"| {' | '.join(cells)} |"


def seen(place: Path) -> bool:
    """Whether the run folder has a report and a trial with a rate."""
    file = place / "run" / "run.json"
    found = json.loads(file.read_text()) if file.exists() else {"trials": []}
    return (place / "run" / "report.html").exists() and bool(found["trials"][0]["samples_per_s"])


def versions(python: str) -> dict[str, str]:
    listed = run(python, "-m", "pip", "list", "--format", "json").stdout
    return {one["name"]: one["version"] for one in json.loads(listed)}


def attempt(*command: str, cwd: Path | None = None) -> subprocess.CompletedProcess[str]:
    return subprocess.run(command, capture_output=True, text=True, check=False, cwd=cwd)


def run(*command: str) -> subprocess.CompletedProcess[str]:
    """Run a command. Raises `RuntimeError` with the end of its stderr if it fails."""
    done = attempt(*command)
    if done.returncode:
        raise RuntimeError(f"{' '.join(command)}: {done.stderr[-1000:]}")
    return done


if __name__ == "__main__":
    main()
