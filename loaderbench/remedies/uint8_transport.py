"""Batches are float32: four bytes for each that was decoded. Send uint8, and normalise where it is used."""

from loaderbench.remedies.by_cause import CauseRemedy

REMEDY = CauseRemedy(
    id="uint8_transport",
    title="Send uint8 batches, and normalise them on the device",
    applies=lambda found: found.named(stages="transport") and not found.facts.tiny_batches,
    code="""mean = torch.tensor([0.485, 0.456, 0.406], device=device).view(3, 1, 1) * 255
std = torch.tensor([0.229, 0.224, 0.225], device=device).view(3, 1, 1) * 255
for images, labels in loader:  # of uint8: leave ToTensor and Normalize out of the dataset
    images = (images.to(device, non_blocking=True).float() - mean) / std
""",
)
