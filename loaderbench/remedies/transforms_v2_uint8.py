"""Transforms work on float32, or image by image in Python: v2 on uint8 moves a quarter of the bytes."""

from loaderbench.remedies.by_cause import CauseRemedy

REMEDY = CauseRemedy(
    id="transforms_v2_uint8",
    title="Use transforms v2 on uint8, and convert last",
    applies=lambda found: found.named(stages="transform", limits="cpu"),
    code="""from torchvision.transforms import v2

transform = v2.Compose([
    v2.ToImage(),
    v2.RandomResizedCrop(224, antialias=True),
    v2.RandomHorizontalFlip(),
    v2.ToDtype(torch.float32, scale=True),
    v2.Normalize(mean, std),
])
""",
)
