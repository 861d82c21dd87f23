"""Frozen records passed between packages and saved in `run.json`. Field names carry units. Standard library only.

A value that could not be measured is `None`, and `not_measured` of the same record gives the reason, by field name. An
`Interval` is a 95% interval over rounds (processes), never over the batches of one process.
"""

from loaderbench.records.comparison import (
    Comparison as Comparison,
    FailedTrials as FailedTrials,
    FailureCount as FailureCount,
    Gate as Gate,
    GateOutcome as GateOutcome,
    GateResult as GateResult,
    MetricChange as MetricChange,
    SideBySide as SideBySide,
    Version as Version,
)
from loaderbench.records.conclusions import (
    Baseline as Baseline,
    Best as Best,
    Ceiling as Ceiling,
    Conclusions as Conclusions,
    Configuration as Configuration,
    Gain as Gain,
    Recommendation as Recommendation,
    TunedArguments as TunedArguments,
    config_reference as config_reference,
    gain_reference as gain_reference,
)
from loaderbench.records.costs import (
    BatchMemory as BatchMemory,
    Bottleneck as Bottleneck,
    Contention as Contention,
    CopyBandwidth as CopyBandwidth,
    EpochCost as EpochCost,
    FreedPart as FreedPart,
    GpuMemory as GpuMemory,
    Isolation as Isolation,
    IsolationRun as IsolationRun,
    Noise as Noise,
    Overhead as Overhead,
    WorkerSetting as WorkerSetting,
)
from loaderbench.records.demand import (
    CALIBRATION_FORMAT as CALIBRATION_FORMAT,
    AssumedDemand as AssumedDemand,
    Calibration as Calibration,
    StepTime as StepTime,
)
from loaderbench.records.environment import (
    DatasetSummary as DatasetSummary,
    Environment as Environment,
    Gpu as Gpu,
    PlanSummary as PlanSummary,
)
from loaderbench.records.inside import (
    BusyThread as BusyThread,
    CodeAround as CodeAround,
    CodeLooks as CodeLooks,
    CountedStack as CountedStack,
    Epochs as Epochs,
    KernelLooks as KernelLooks,
    LoopLine as LoopLine,
    MachineUse as MachineUse,
    Reads as Reads,
    SampleTimes as SampleTimes,
    SlowSample as SlowSample,
    Spread as Spread,
    StackFrame as StackFrame,
    StackLooks as StackLooks,
    StageCost as StageCost,
    StageLooks as StageLooks,
    Taking as Taking,
    WaitParts as WaitParts,
    WorkerStates as WorkerStates,
)
from loaderbench.records.run import (
    Dropped as Dropped,
    Final as Final,
    FormatCopy as FormatCopy,
    Measured as Measured,
    OnlyRank as OnlyRank,
    Parity as Parity,
    RunRecord as RunRecord,
)
from loaderbench.records.timeline import (
    BatchTimes as BatchTimes,
    Readings as Readings,
    TimelinePoint as TimelinePoint,
)
from loaderbench.records.trial import (
    SW_POWER_CAP as SW_POWER_CAP,
    CopySpeed as CopySpeed,
    Failure as Failure,
    GpuPerformance as GpuPerformance,
    GpuUse as GpuUse,
    LoaderInside as LoaderInside,
    LoopTimes as LoopTimes,
    PlannedTrial as PlannedTrial,
    ProcessReadings as ProcessReadings,
    RankReadings as RankReadings,
    ResourceUse as ResourceUse,
    TimeSlices as TimeSlices,
    Trial as Trial,
)
from loaderbench.records.verdict import (
    Evidence as Evidence,
    HostUse as HostUse,
    Hotspot as Hotspot,
    Rank as Rank,
    Verdict as Verdict,
)
from loaderbench.records.verification import (
    IDENTICAL as IDENTICAL,
    NOTHING_LEFT as NOTHING_LEFT,
    Candidate as Candidate,
    Judgement as Judgement,
    PixelChange as PixelChange,
    Tried as Tried,
    Verification as Verification,
)
from loaderbench.records.words import (
    READABLE_VERSIONS as READABLE_VERSIONS,
    SCHEMA_VERSION as SCHEMA_VERSION,
    About as About,
    Answer as Answer,
    Basis as Basis,
    Bound as Bound,
    Confidence as Confidence,
    Config as Config,
    CostName as CostName,
    Interval as Interval,
    IsolationName as IsolationName,
    IsolationRunName as IsolationRunName,
    Kind as Kind,
    Limit as Limit,
    Outcome as Outcome,
    Reasons as Reasons,
    Role as Role,
    Scalar as Scalar,
    Side as Side,
    Stage as Stage,
    Standing as Standing,
    Status as Status,
    WorkerSettingName as WorkerSettingName,
    as_yaml as as_yaml,
    config_label as config_label,
    config_name as config_name,
    format_scalar as format_scalar,
    in_bytes as in_bytes,
    moment as moment,
    to_dict as to_dict,
    varying as varying,
)
