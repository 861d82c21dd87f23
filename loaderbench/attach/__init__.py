"""A running training seen from outside: its processes are looked at, and nothing in them changes.

`job.find_trainings` -> `watch.Watch` and `stacks.StackRecorder`, for some seconds -> `measured.measured_of`.
"""
