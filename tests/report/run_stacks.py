"""A profile with stacks of the threads that load, made up in memory."""

from dataclasses import replace

import run_profiles as profiles

from loaderbench.records import CodeLooks, CountedStack, RunRecord, StackFrame

FETCH = StackFrame(file="photos.py", line=12, function="Photos.__getitem__", own=True, text="image = load(path)")
LOAD = StackFrame(file="photos.py", line=30, function="load", own=True, text="return Image.open(path).resize(size)")
RESIZE = StackFrame(file="PIL/Image.py", line=2400, function="Image.resize", own=False)
DECODE = StackFrame(file="PIL/ImageFile.py", line=420, function="ImageFile.load", own=False)
RARE = StackFrame(file="PIL/TiffTags.py", line=1, function="lookup", own=False)

LOOKS = CodeLooks(
    looks=1000,
    frames=(FETCH, LOAD, RESIZE, DECODE, RARE),
    stacks=(
        CountedStack("decode", (0, 1, 3), 60.0),
        CountedStack("transform", (0, 1, 2), 30.0),
        CountedStack("sample", (0,), 9.7),
        CountedStack("decode", (0, 1, 3, 4), 0.3),
    ),
)


def profiled(looks: CodeLooks | None = LOOKS) -> RunRecord:
    """A profile of one trial with these stacks."""
    reasons = {} if looks else {"code_looks": profiles.NO_TRACE}
    trial = profiles.traced_trial()
    return profiles.profile_of(
        replace(trial, code_looks=looks, stages=None, not_measured={**trial.not_measured, **reasons}),
    )
