"""Writing the metrics of one evaluation per context length, as one small file."""

from pathlib import Path

import torch
from safetensors.torch import save

from epigrok.evaluation import METRICS, EvaluationRow
from epigrok.files import write_file


def write_positions(run_path: Path, step: int, rows: list[EvaluationRow]) -> None:
    """Write the per-context-length metrics of one evaluation."""
    tensors = {
        f"{row.split}/{row.posterior}/{row.num_samples}": torch.stack(
            [row.per_context_length[metric] for metric in METRICS]
        )
        .float()
        .cpu()
        for row in rows
    }
    directory = run_path / "positions"
    directory.mkdir(exist_ok=True)
    content = save(tensors, metadata={"metrics": ",".join(METRICS)})
    write_file(directory / f"step-{step}.safetensors", content)
