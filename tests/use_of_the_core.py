"""What `pip install epigrok` without an extra is for; run as a script where nothing else is."""

import tempfile
from pathlib import Path

import numpy as np
import torch

import epigrok
from epigrok.posteriors import (
    IVON,
    DiagonalLaplace,
    ExactLaplace,
    LastLayerLaplace,
    WeightNoise,
    load_posterior,
)

torch.manual_seed(0)
x = torch.randn(200, 4)
y = x[:, :3].argmax(dim=1)
model = torch.nn.Sequential(torch.nn.Linear(4, 16), torch.nn.ReLU(), torch.nn.Linear(16, 3))
ivon = IVON(model.parameters(), lr=0.1, ess=200.0)
for _ in range(20):
    with ivon.sampled_weights():
        torch.nn.functional.cross_entropy(model(x), y).backward()
    ivon.step()

batches = [(x[:100], y[:100]), (x[100:], y[100:])]
for kind in (LastLayerLaplace, ExactLaplace, DiagonalLaplace):
    posterior = kind.fit(model, batches)
    found = epigrok.predict(model, posterior, x)
    assert found.epistemic.shape == (200,), kind
with tempfile.TemporaryDirectory() as folder:
    posterior.save(Path(folder) / "posterior.safetensors")
    again = epigrok.predict(model, load_posterior(Path(folder) / "posterior.safetensors"), x)
assert torch.equal(again.epistemic, found.epistemic)
noise = WeightNoise.relative(model, 0.1)
assert (epigrok.predict(model, noise, x).epistemic >= 0.0).all()
parts = epigrok.decompose(torch.rand(5, 7, 3).softmax(dim=-1))
torch.testing.assert_close(parts.total, parts.aleatoric + parts.epistemic)

# A whole number of NumPy's will do, and can be saved.
settings = epigrok.MonitorSettings(num_rows=np.int64(80))
monitor = epigrok.GrokMonitor(model, seen=x[:100], watched={"held out": x[100:]}, settings=settings)
with tempfile.TemporaryDirectory() as folder:
    monitor.save(Path(folder) / "monitor.json")
assert monitor.update(1, train_accuracy=1.0)["held out"].tolerance > 0.0
assert monitor.network_tolerance("held out").value > 0.0
assert epigrok.preset("classic").num_steps > 0
print("the core works")
