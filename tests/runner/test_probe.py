"""torch and torchvision of different builds are told before anything is measured, with the repair."""

from pathlib import Path

from command_line import Cli


def test_a_torchvision_of_another_build_is_one_line_with_its_repair(command: Cli, tmp_path: Path, photos: Path) -> None:
    fake = tmp_path / "fake" / "torchvision"
    fake.mkdir(parents=True)
    (fake / "__init__.py").write_text("raise RuntimeError('operator torchvision::nms does not exist')\n")
    (tmp_path / "s.yaml").write_text("sweep: {batch_size: [4]}\nmeasure: {rounds: 1}\n")
    result = command("run", "s.yaml", "--data", photos, "-q", "--out", "r", PYTHONPATH=str(fake.parent))
    assert result.returncode == 5
    assert len(result.stderr.strip().splitlines()) == 1, result.stderr
    assert "builds do not match" in result.stderr
    assert "uv pip install --reinstall torch torchvision" in result.stderr
    assert not (tmp_path / "r").exists()


def test_a_target_whose_module_exits_is_one_line_and_prints_to_stderr(command: Cli, tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text("import sys\nprint('device: cpu', flush=True)\nsys.exit(3)\n")
    (tmp_path / "s.yaml").write_text("dataset: {kind: target, target: 'train:make'}\n")
    result = command("run", "s.yaml", "--json", "-", "-q", "--out", "r")
    assert result.returncode == 5
    assert result.stdout == ""
    assert "device: cpu" in result.stderr
    assert "target train:make: its module exits when it is imported; move what it runs under" in result.stderr
