"""Profile a training loop over a folder of images: three extra lines, marked 1 to 3.

    uv pip install path/to/loaderbench        # the clone
    loaderbench photos /tmp/photos            # or your own folder, one subfolder per class
    python examples/training_loop.py /tmp/photos

Prints the bottleneck and the cost of a sample in the workers, and writes training_loop.html.
"""

import argparse

import torch
from torch import nn
from torch.utils.data import DataLoader
from torchvision import transforms
from torchvision.datasets import ImageFolder

from loaderbench import Profiler

RECIPE = transforms.Compose([
    transforms.RandomResizedCrop(224),
    transforms.RandomHorizontalFlip(),
    transforms.ToTensor(),
    transforms.Normalize((0.485, 0.456, 0.406), (0.229, 0.224, 0.225)),
])  # fmt: skip


def train(folder: str, workers: int, epochs: int) -> None:
    device = "cuda" if torch.cuda.is_available() else "cpu"
    dataset = ImageFolder(folder, RECIPE)
    loader = DataLoader(dataset, batch_size=8, shuffle=True, num_workers=workers, pin_memory=device == "cuda")
    model = nn.Sequential(nn.Conv2d(3, 8, 7, 4), nn.ReLU(), nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.LazyLinear(1000))
    model.to(device)
    model(torch.zeros(1, 3, 224, 224, device=device))  # sizes the last layer
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)

    with Profiler("train", warmup=5, trace=True) as prof:  # 1
        for _ in range(epochs):
            for images, labels in prof.iter(loader):  # 2: len(), .dataset, .sampler and set_epoch pass through
                with prof.stage("transfer"):  # any number of these, or none
                    images, labels = images.to(device, non_blocking=True), labels.to(device, non_blocking=True)
                with prof.stage("forward and backward"):
                    loss = nn.functional.cross_entropy(model(images), labels)
                    optimizer.zero_grad()
                    loss.backward()
                optimizer.step()

    print(prof.result)  # 3
    prof.result.to_html("training_loop.html")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="Profile a small training loop over a folder of images.")
    parser.add_argument("folder")
    parser.add_argument("--workers", type=int, default=1)
    parser.add_argument("--epochs", type=int, default=3)
    arguments = parser.parse_args()
    train(arguments.folder, arguments.workers, arguments.epochs)
