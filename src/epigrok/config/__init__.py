"""What a run is: dataclasses, presets, splits, overrides, JSON and run ids. No torch.

Settings belong here, and checks of their values. What is made from them lives in `tasks`, `model`
and `training`; many configurations at once are a sweep, in `sweeps`.
"""

from epigrok.config.learning import (
    AdamWConfig,
    IVONConfig,
    MLPConfig,
    ModelConfig,
    MuonConfig,
    OptimiserConfig,
    ScheduleConfig,
    TransformerConfig,
)
from epigrok.config.posterior import PosteriorName, parse_posterior
from epigrok.config.presets import departures_from_recipe, preset, presets, register_preset
from epigrok.config.run import ContextSeries, EvaluationConfig, RunConfig
from epigrok.config.serialisation import differing_fields, flatten, from_json, run_id, to_json
from epigrok.config.splits import Split
from epigrok.config.task import ClassicTask, OneParameterTask, TaskConfig, TwoParameterTask

__all__ = [
    "AdamWConfig",
    "ClassicTask",
    "ContextSeries",
    "EvaluationConfig",
    "IVONConfig",
    "MLPConfig",
    "ModelConfig",
    "MuonConfig",
    "OneParameterTask",
    "OptimiserConfig",
    "PosteriorName",
    "RunConfig",
    "ScheduleConfig",
    "Split",
    "TaskConfig",
    "TransformerConfig",
    "TwoParameterTask",
    "departures_from_recipe",
    "differing_fields",
    "flatten",
    "from_json",
    "parse_posterior",
    "preset",
    "presets",
    "register_preset",
    "run_id",
    "to_json",
]
