"""A training step takes batches as the recipes give them: normalised, or uint8 to be normalised on its device."""

import torch

from loaderbench.consumers.cuda import TrainingStep
from loaderbench.datasets.image_samples import MEAN, STD


def test_uint8_batches_are_normalised_before_the_model_sees_them() -> None:
    step, seen = TrainingStep("resnet18", "cpu"), list[torch.Tensor]()
    step._model.register_forward_pre_hook(lambda _, inputs: seen.append(inputs[0].detach().clone()))
    images = torch.randint(0, 256, (2, 3, 64, 64), dtype=torch.uint8)
    mean, std = (torch.tensor(values).view(3, 1, 1) for values in (MEAN, STD))
    normalised = (images / 255 - mean) / std
    for batch in (images, normalised):
        step.consume((batch, torch.tensor([0, 1])), 2)
    assert torch.allclose(seen[0], seen[1], atol=1e-4)
    assert torch.allclose(seen[1], normalised)
