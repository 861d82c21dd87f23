"""Observes a running training from outside, without changing its processes.

`job.find_trainings` -> `watch.Watch` and `stacks.StackRecorder`, for some seconds -> `measured.measured_of`.
"""
