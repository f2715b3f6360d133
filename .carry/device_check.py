"""Steps per second of presets on a device, eager and compiled; a quick look, not `epigrok bench`."""

import sys
import time
from dataclasses import replace

import torch

from epigrok.config import preset
from epigrok.evaluation import evaluate, evaluation_sets, tracked_posteriors
from epigrok.tasks import build_family, sample_world
from epigrok.training import initial_state, training_steps

device = sys.argv[1]
torch.backends.cuda.matmul.allow_tf32 = True
for name in sys.argv[2:]:
    config = preset(name)
    family = build_family(config, sample_world(config.task, 0), device)
    for compiled in (False, True):
        state = initial_state(config, device)
        started = time.time()
        for record in training_steps(state, family, config, compiled):
            if record.step == 20:
                torch.cuda.synchronize()
                warm = time.time()
            if record.step == 120:
                break
        torch.cuda.synchronize()
        rate = 100 / (time.time() - warm)
        print(
            f"{name} compiled={compiled} {rate:.1f} steps/s, warm-up {warm - started:.0f} s, "
            f"loss {record.loss.item():.4f}, memory {torch.cuda.max_memory_allocated() / 2**30:.1f} GiB",
            flush=True,
        )
    sets = evaluation_sets(config, family)
    for repeat in range(2):
        torch.cuda.synchronize()
        started = time.time()
        posteriors = tracked_posteriors(
            config, state.model, sets["id_train"], state.ivon_posterior()
        )
        torch.cuda.synchronize()
        fitted = time.time()
        for posterior in posteriors:
            begin = time.time()
            evaluate(state.model, [posterior], sets, 16)
            torch.cuda.synchronize()
            print(f"{name} {posterior.name}: {time.time() - begin:.2f} s", flush=True)
        print(
            f"{name} fit {fitted - started:.2f} s, evaluation {time.time() - fitted:.2f} s",
            flush=True,
        )
