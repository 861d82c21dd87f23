"""A rank with slower samples holds back the other: sharing the workers of both is tried, and its gain is measured."""

from __future__ import annotations

import json
from typing import Any

import pytest
from command_line import in_process

from loaderbench import remedies

pytestmark = [pytest.mark.slow, pytest.mark.timed]  # its ranks wait for storage; on busy CPUs the verdict names no rank

UNEVEN = """\
import time
import torch

class Uneven(torch.utils.data.Dataset):
    def __len__(self):
        return 2000

    def __getitem__(self, index):
        time.sleep(0.012 if index % 2 else 0.002)  # odd samples are those of rank 1
        return torch.zeros(3, 32, 32), 0

def make():
    return Uneven()
"""

SUITE = """\
name: uneven
dataset: {kind: target, target: "uneven:make"}
loader: {num_workers: 1, batch_size: 16}
sweep: {ranks: [2]}
consumer: {kind: model, model: squeezenet1_1, device: cpu, image_size: 32, precision: fp32}
measure: {rounds: 2, seconds: 0.3}
"""


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    place = tmp_path_factory.mktemp("uneven")
    (place / "uneven.py").write_text(UNEVEN)
    (place / "s.yaml").write_text(SUITE)
    with pytest.MonkeyPatch.context() as changed:  # other fixes would be tried for two minutes
        changed.setattr(remedies, "REMEDIES", [fix for fix in remedies.REMEDIES if fix.id == "share_workers"])
        result = in_process("run", "s.yaml", "--out", "run", "-q", cwd=place)
    assert result.returncode == 0, result.stderr
    found: dict[str, Any] = json.loads((place / "run" / "run.json").read_text())
    return found


def test_the_slow_rank_is_named(run: dict[str, Any]) -> None:
    assert run["verdict"]["rank"] == 1
    assert run["verdict"]["headline"].startswith("rank 1 holds back rank 0: ")


def test_sharing_the_workers_was_tried_and_its_gain_is_measured(run: dict[str, Any]) -> None:
    (found,) = (card for card in run["recommendations"] if card["id"] == "share_workers")
    assert (found["status"], found["basis"], found["change"]) == ("open", "measured", {"share_workers": True})
    assert found["gain"]["est"] > 1
    assert found["snippet"].rstrip().endswith("loader = SharedWorkers(loader)")
    shared = [trial for trial in run["trials"] if trial["config"].get("share_workers")]
    assert {trial["status"] for trial in shared} == {"completed"}
    assert {len(trial["ranks"]) for trial in shared} == {2}
