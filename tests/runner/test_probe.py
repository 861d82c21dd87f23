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
