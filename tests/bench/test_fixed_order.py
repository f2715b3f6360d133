"""The cost of sums in one order."""

import pytest
import torch
from tiny_run import tiny

from epigrok.bench.fixed_order import FixedOrder, measure_fixed_order
from epigrok.bench.speed import comparable
from epigrok.config import preset


def test_the_share_is_what_the_order_adds_to_a_step() -> None:
    assert FixedOrder(in_order=0.3, in_any_order=0.2).share_of(10.0) == pytest.approx(0.01)
    assert FixedOrder(in_order=0.1, in_any_order=0.2).share_of(10.0) == pytest.approx(-0.01)


def test_a_cpu_adds_in_order_anyway() -> None:
    assert measure_fixed_order(comparable(tiny()), torch.device("cpu")) is None


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA device")
def test_both_orders_are_measured_on_a_gpu() -> None:
    found = measure_fixed_order(comparable(preset("icl-small")), torch.device("cuda"))
    assert found is not None
    assert found.in_order > 0
    assert found.in_any_order > 0
