"""Which networks train in kernels of their own; `gpu/test_fast_path.py` has what those compute."""

from epigrok.config import preset
from epigrok.model import build_model
from epigrok.model.fused_training import fits_kernels


def test_no_network_fits_the_kernels_without_a_gpu() -> None:
    assert not fits_kernels(build_model(preset("icl-tiny")), 256)
    assert not fits_kernels(build_model(preset("classic")), 256)
