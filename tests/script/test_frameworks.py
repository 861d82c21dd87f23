"""Trainings as the frameworks' own tutorials write them, unmodified: `uv run --group frameworks pytest -m slow`."""

from __future__ import annotations

import dataclasses
import functools
import importlib.util
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from scripts import HEAD, profile, write

from loaderbench.records import Trial
from loaderbench.result import load
from loaderbench.tuning.edit import HUGGING_FACE_NAMES

pytestmark = pytest.mark.slow

CALLS_A_TRAINER = re.compile(r"\.(fit|train|run)\(")
"""A line that runs the entire loop says nothing about a step."""

LIGHTNING = """\
import lightning

class Classifier(lightning.LightningModule):
    def __init__(self):
        super().__init__()
        self.layer = torch.nn.Linear(8, 4)

    def training_step(self, batch, batch_index):
        inputs, labels = batch
        return torch.nn.functional.cross_entropy(self.layer(inputs), labels)

    def validation_step(self, batch, batch_index):
        self.layer(batch[0])

    def configure_optimizers(self):
        return torch.optim.SGD(self.parameters(), lr=0.01)

if __name__ == "__main__":
    train_loader = DataLoader(Slow(480), batch_size=8, num_workers=2)
    val_loader = DataLoader(Slow(160, 0.001), batch_size=8)
    trainer = lightning.Trainer(max_epochs=2, accelerator="cpu", logger=False, enable_checkpointing=False)
    trainer.fit(Classifier(), train_loader, val_loader)
"""

ACCELERATE = """\
from accelerate import Accelerator

if __name__ == "__main__":
    accelerator = Accelerator(cpu=True)
    model = torch.nn.Linear(8, 4)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    train_loader = DataLoader(Slow(480), batch_size=8, num_workers=2)
    model, optimizer, train_loader = accelerator.prepare(model, optimizer, train_loader)
    for epoch in range(2):
        for inputs, labels in train_loader:
            loss = torch.nn.functional.cross_entropy(model(inputs), labels)
            optimizer.zero_grad()
            accelerator.backward(loss)
            optimizer.step()
"""

HUGGING_FACE = """\
from transformers import Trainer, TrainingArguments

class Rows(Slow):
    def __getitem__(self, index):
        inputs, label = super().__getitem__(index)
        return {"inputs": inputs, "labels": label}

class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = torch.nn.Linear(8, 4)

    def forward(self, inputs, labels):
        return {"loss": torch.nn.functional.cross_entropy(self.layer(inputs), labels)}

if __name__ == "__main__":
    arguments = TrainingArguments(
        output_dir="out", num_train_epochs=2, per_device_train_batch_size=8, dataloader_num_workers=2,
        use_cpu=True, report_to=[], save_strategy="no",
    )
    Trainer(Model(), arguments, train_dataset=Rows(480)).train()
"""

IGNITE = """\
from ignite.engine import create_supervised_trainer

if __name__ == "__main__":
    model = torch.nn.Linear(8, 4)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    train_loader = DataLoader(Slow(480), batch_size=8, num_workers=2)
    trainer = create_supervised_trainer(model, optimizer, torch.nn.functional.cross_entropy)
    trainer.run(train_loader, max_epochs=2)
"""

TIMM = """\
from timm.data import create_loader
from timm.data.dataset import ImageDataset
from PIL import Image

if __name__ == "__main__":
    for number in range(480):
        folder = f"images/{number % 4}"
        os.makedirs(folder, exist_ok=True)
        Image.new("RGB", (64, 64), (number % 256, 0, 0)).save(f"{folder}/{number}.jpg")
    loader = create_loader(
        ImageDataset("images"), input_size=(3, 32, 32), batch_size=8, is_training=True, num_workers=2,
        use_prefetcher=False, persistent_workers=False,
    )
    for epoch in range(2):
        for images, labels in loader:
            images.mean()
"""

TORCHVISION = """\
import argparse, collections
from PIL import Image
from torch.utils.data.dataloader import default_collate
from torchvision import datasets
from torchvision.transforms import v2

class MetricLogger:
    def __init__(self):
        self.iter_time = collections.deque(maxlen=20)

    def log_every(self, iterable, print_freq, header):
        end = time.time()
        for i, obj in enumerate(iterable):
            yield obj
            self.iter_time.append(time.time() - end)
            end = time.time()
        print(header, "Total", len(iterable))

class ClassificationPresetTrain:
    def __init__(self, *, crop_size):
        self.transforms = v2.Compose([
            v2.RandomResizedCrop(crop_size, antialias=True), v2.RandomHorizontalFlip(), v2.PILToTensor(),
            v2.ToDtype(torch.float, scale=True), v2.Normalize(mean=[0.5], std=[0.2]), v2.ToPureTensor(),
        ])

    def __call__(self, img):
        return self.transforms(img)

def load_data(traindir, args):
    dataset = datasets.ImageFolder(traindir, ClassificationPresetTrain(crop_size=32))
    return dataset, torch.utils.data.RandomSampler(dataset)

def train_one_epoch(model, criterion, optimizer, data_loader, device, epoch, args):
    model.train()
    for i, (image, target) in enumerate(MetricLogger().log_every(data_loader, args.print_freq, f"Epoch: [{epoch}]")):
        image, target = image.to(device), target.to(device)
        loss = criterion(model(image), target)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()

def main(args):
    dataset, train_sampler = load_data("images", args)
    mixup = v2.MixUp(num_classes=4)

    def collate_fn(batch):
        return mixup(*default_collate(batch))

    data_loader = torch.utils.data.DataLoader(
        dataset, batch_size=args.batch_size, sampler=train_sampler, num_workers=args.workers, pin_memory=True,
        collate_fn=collate_fn,
    )
    model = torch.nn.Sequential(torch.nn.Flatten(), torch.nn.LazyLinear(4))
    model(torch.zeros(1, 3, 32, 32))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9)
    for epoch in range(args.epochs):
        train_one_epoch(model, torch.nn.CrossEntropyLoss(), optimizer, data_loader, args.device, epoch, args)

if __name__ == "__main__":
    for number in range(480):
        os.makedirs(f"images/{number % 4}", exist_ok=True)
        Image.new("RGB", (64, 64), (number % 256, 0, 0)).save(f"images/{number % 4}/{number}.jpg")
    parser = argparse.ArgumentParser()
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--batch-size", default=8, type=int)
    parser.add_argument("--epochs", default=2, type=int)
    parser.add_argument("--workers", default=2, type=int)
    parser.add_argument("--print-freq", default=10, type=int)
    main(parser.parse_args())
"""  # of the shape of references/classification/train.py

FASTAI = """\
from fastai.data.core import DataLoaders
from fastai.data.load import DataLoader as Loader
from fastai.learner import Learner

if __name__ == "__main__":
    dls = DataLoaders(Loader(Slow(480), bs=8, num_workers=2, shuffle=True), Loader(Slow(160, 0.001), bs=8))
    Learner(dls, torch.nn.Linear(8, 4), loss_func=torch.nn.CrossEntropyLoss()).fit(2)
"""

SCRIPTS = {
    "lightning": LIGHTNING, "accelerate": ACCELERATE, "transformers": HUGGING_FACE, "ignite": IGNITE, "timm": TIMM,
    "torchvision": TORCHVISION, "fastai": FASTAI,
}  # fmt: skip
EPOCHS = 2
VALIDATED = ("lightning", "fastai")


@pytest.mark.parametrize(
    ("package", "name"),
    [
        ("lightning", "train_loader"),
        ("accelerate", "train_loader"),
        ("transformers", "Rows loader"),
        ("ignite", "train_loader"),
        ("timm", "loader"),
        ("torchvision", "data_loader"),
        ("fastai", "dls.train"),
    ],
)
def test_every_epoch_is_recorded_with_its_stages_and_a_validation_apart(
    tmp_path: Path, package: str, name: str
) -> None:
    if importlib.util.find_spec(package) is None:
        pytest.skip(f"{package} is not installed: uv sync --group frameworks")
    write(tmp_path, HEAD + SCRIPTS[package])
    done = profile(tmp_path, "--out", "run", "train.py")
    assert done.returncode == 0, done.stderr
    assert "cannot record" not in done.stderr
    run = load(tmp_path / "run")
    trial: Trial = run.trials[0]
    assert run.record.name == name
    assert trial.epochs is not None
    assert trial.epochs.begun == EPOCHS
    counted, left_out = (
        (trial.batches or 0) + (trial.warmup_batches or 0),
        2 * EPOCHS,
    )  # the first, and one that is left
    assert EPOCHS * 60 - left_out <= counted <= EPOCHS * 60 - EPOCHS
    assert trial.stages, trial.not_measured
    assert not (trial.step_line and CALLS_A_TRAINER.search(trial.step_line.text)), trial.step_line
    assert trial.samples == 8 * (trial.batches or 0)
    validations = [load(file.parent).trials for file in (tmp_path / "run").glob("*val*/run.json")]
    assert [trial.config["num_workers"] for (trial,) in validations] == ([0] if package in VALIDATED else [])
    assert all(trial.stages for (trial,) in validations)


TRAIN = "Trainer(Model(), arguments, train_dataset=Rows(480)).train()"
TRAINED = TRAIN.replace("Rows(480)", 'Rows(480), callbacks=[Callback("run")]')
AFTER_AN_EXCEPTION = HUGGING_FACE.replace(
    f"    {TRAIN}",
    f"""\
    class Fails(Model):
        steps = 0

        def forward(self, inputs, labels):
            self.steps += 1
            if self.steps > 30:
                raise RuntimeError("planted")
            return super().forward(inputs, labels)

    try:
        Trainer(Fails(), arguments, train_dataset=Rows(480), callbacks=[Callback("failed")]).train()
    except RuntimeError as error:
        print(error)
    {TRAINED}
""",
)
CALLBACKS = {
    "lightning": LIGHTNING.replace(
        "enable_checkpointing=False", 'enable_checkpointing=False, callbacks=[Callback("run")]'
    ),
    "transformers": AFTER_AN_EXCEPTION,
}
HOMES = {"lightning": "lightning", "transformers": "huggingface"}

Trained = tuple[Path, "subprocess.CompletedProcess[str]"]


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Trained]:
    """Trains once with the callback of a framework: the folder, and what the script printed."""

    @functools.cache
    def train(package: str) -> Trained:
        place = tmp_path_factory.mktemp(package)
        own = f"from loaderbench.integrations.{HOMES[package]} import LoaderBenchCallback as Callback\n"
        write(place, HEAD + own + CALLBACKS[package])
        done = subprocess.run(
            [sys.executable, "train.py"], cwd=place, capture_output=True, text=True, timeout=120, check=False
        )
        assert done.returncode == 0, done.stderr
        return place, done

    return train


@pytest.mark.parametrize("package", HOMES)
def test_a_callback_records_what_the_command_does(trained: Callable[[str], Trained], package: str) -> None:
    if importlib.util.find_spec(package) is None:
        pytest.skip(f"{package} is not installed: uv sync --group frameworks")
    place, done = trained(package)
    assert "Report: run/report.html" in done.stderr
    run = load(place / "run")
    trial: Trial = run.trials[0]
    assert trial.epochs is not None
    assert trial.epochs.begun == EPOCHS
    assert set(trial.stages or {}) >= {"sample", "collate"} or "read" in (trial.stages or {})


def test_a_training_after_one_that_raised_has_a_run_of_its_own(trained: Callable[[str], Trained]) -> None:
    pytest.importorskip("transformers", reason="transformers is not installed: uv sync --group frameworks")
    assert TRAIN in HUGGING_FACE
    place, done = trained("transformers")
    assert done.stdout.splitlines()[0] == "planted"
    assert "its callback does nothing" not in done.stderr
    failed, again = (load(place / name).trials[0] for name in ("failed", "run"))
    assert [one.epochs.begun for one in (failed, again) if one.epochs] == [1, EPOCHS]
    assert 0 < (failed.batches or 0) < 30 < (again.batches or 0)


WITH_A_CALLBACK = """\
from loaderbench.script.in_process import LoaderRecording

if __name__ == "__main__":
    callback = LoaderRecording(out="run")
    callback.start()
    for batch in DataLoader(Slow(320), batch_size=8):
        time.sleep(0.001)
    print(len(callback.finish()))
"""


def test_under_the_command_what_a_callback_calls_does_nothing(tmp_path: Path) -> None:
    write(tmp_path, HEAD + WITH_A_CALLBACK)
    done = profile(tmp_path, "--out", "again", "train.py")
    assert (done.returncode, done.stdout) == (0, "0\n"), done.stderr
    assert "its callback does nothing" in done.stderr
    assert not (tmp_path / "run").exists()
    assert load(tmp_path / "again").trials[0].samples


def test_hugging_face_has_the_arguments_that_tune_sets() -> None:
    transformers = pytest.importorskip("transformers")
    known = {field.name for field in dataclasses.fields(transformers.TrainingArguments)}
    assert set(HUGGING_FACE_NAMES.values()) <= known
