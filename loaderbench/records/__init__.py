"""What crosses a border: frozen records with units in their field names. Standard library only.

A value that could not be measured is `None`, and `not_measured` of the same record says why, by field name. An
`Interval` is a 95 % interval over rounds (processes), never over the batches of one.
"""

from loaderbench.records.causes import (
    EpochCost,
    MachineUse,
    Reads,
    Taking,
    WaitParts,
)
from loaderbench.records.comparison import (
    Comparison,
    MetricChange,
)
from loaderbench.records.gates import (
    Gate,
    GateOutcome,
    GateResult,
)
from loaderbench.records.inside import (
    Epochs,
    SampleTimes,
    SlowSample,
    Spread,
    StageCost,
    WorkerStates,
)
from loaderbench.records.ladder import (
    Contention,
    Ladder,
    Rung,
)
from loaderbench.records.run import (
    Baseline,
    Best,
    Ceiling,
    Configuration,
    DatasetSummary,
    Environment,
    Gain,
    Gpu,
    Noise,
    Overhead,
    PlanSummary,
    Recommendation,
    RunRecord,
    Verdict,
)
from loaderbench.records.timeline import (
    Readings,
    TimelinePoint,
)
from loaderbench.records.trial import (
    Failure,
    GpuUse,
    Trial,
    Turns,
)
from loaderbench.records.verification import (
    Candidate,
    Tried,
    Verification,
)
from loaderbench.records.words import (
    SCHEMA_VERSION,
    Basis,
    Bound,
    Confidence,
    Config,
    Interval,
    Kind,
    Outcome,
    Reasons,
    RungName,
    Scalar,
    Standing,
    Status,
    config_label,
    format_scalar,
    to_dict,
    varying,
)

__all__ = [
    "SCHEMA_VERSION",
    "Baseline",
    "Basis",
    "Best",
    "Bound",
    "Candidate",
    "Ceiling",
    "Comparison",
    "Confidence",
    "Config",
    "Configuration",
    "Contention",
    "DatasetSummary",
    "Environment",
    "EpochCost",
    "Epochs",
    "Failure",
    "Gain",
    "Gate",
    "GateOutcome",
    "GateResult",
    "Gpu",
    "GpuUse",
    "Interval",
    "Kind",
    "Ladder",
    "MachineUse",
    "MetricChange",
    "Noise",
    "Outcome",
    "Overhead",
    "PlanSummary",
    "Readings",
    "Reads",
    "Reasons",
    "Recommendation",
    "RunRecord",
    "Rung",
    "RungName",
    "SampleTimes",
    "Scalar",
    "SlowSample",
    "Spread",
    "StageCost",
    "Standing",
    "Status",
    "Taking",
    "TimelinePoint",
    "Trial",
    "Tried",
    "Turns",
    "Verdict",
    "Verification",
    "WaitParts",
    "WorkerStates",
    "config_label",
    "format_scalar",
    "to_dict",
    "varying",
]
