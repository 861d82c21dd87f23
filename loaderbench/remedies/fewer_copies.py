"""Copying batches to the GPU takes longer than training on them.

Triggers when the copy limits the training step. In a profile, that is the time of a stage marked `transfer`.

What it does: copies each batch once, from pinned memory, without blocking, on a separate stream. The copy of the next
batch then overlaps with the training step. A change of type or layout (`channels_last`) on that stream overlaps too.

How to confirm: run or profile again; the copy takes less of the step.
"""

from loaderbench.remedies.by_cause import CauseRemedy

REMEDY = CauseRemedy(
    id="fewer_copies",
    title="Copy the next batch during the step, on a separate stream",
    applies=lambda found: found.verdict.bound == "transfer" and found.gpu_kind == "cuda",
    code="""import torch

def prefetched(loader, device):  # loader: DataLoader(..., pin_memory=True)
    copies, ready = torch.cuda.Stream(device), None
    for images, labels in loader:
        with torch.cuda.stream(copies):
            copied = images.to(device, non_blocking=True), labels.to(device, non_blocking=True)
            # change type and layout here, after the copy: images.half().contiguous(memory_format=torch.channels_last)
        if ready is not None:
            yield ready
        torch.cuda.current_stream(device).wait_stream(copies)
        for tensor in copied:
            tensor.record_stream(torch.cuda.current_stream(device))
        ready = copied
    if ready is not None:
        yield ready
""",
)
