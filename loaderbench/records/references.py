"""What a gain is measured against, in words: no gain is printed without its reference."""

from __future__ import annotations

from loaderbench.records.conclusions import Recommendation
from loaderbench.records.words import Config, config_label, config_name


def gain_reference(found: Recommendation, baseline: Config, best: Config | None) -> str | None:
    """`vs baseline`, `vs best config`, `vs num_workers=2`: what the gain is over; `None` for one without a gain.

    `best` is the best configuration of the sweep, `None` if there is none.
    """
    if found.gain is None:
        return None
    return f"vs {config_reference(baseline if found.against is None else found.against, baseline, best)}"


def config_reference(config: Config, baseline: Config, best: Config | None) -> str:
    """A configuration by the name a reader knows, else by how it differs from the best one or from the baseline.

    One that only adds to the best is written `best config + normalize=device`.
    """
    if config == baseline:
        return "baseline"
    if best is not None and best != baseline and best.items() <= config.items():
        return " + ".join(filter(None, ("best config", config_label(_beyond(best, config)))))
    return config_label(_beyond(baseline, config)) or config_name(config)


def _beyond(known: Config, config: Config) -> Config:
    """What `config` sets and `known` does not, or sets otherwise."""
    return {axis: value for axis, value in config.items() if axis not in known or known[axis] != value}
