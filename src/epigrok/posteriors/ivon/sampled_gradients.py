"""The gradients that wait for a step: which weight samples they were taken at, and their average.

Gradients of one sample add up over backward passes, as everywhere in PyTorch; different samples
are averaged. What waits is `.grad` itself, so clipping it or clearing it counts.
"""

from collections.abc import Sequence

import torch
from torch import Tensor

from epigrok.posteriors.ivon.flat_parameters import FlatParameters


class SampledGradients:
    """Keeps gradients at samples apart from all others, over groups of parameters."""

    def __init__(self, flats: Sequence[FlatParameters]) -> None:
        self._flats = flats
        self.deviations = [torch.zeros_like(flat.live, dtype=flat.wide_dtype) for flat in flats]
        """Of each group, how far the sample of its gradient is from the mean."""
        self._samples: list[int] = []
        self._earlier: list[tuple[Tensor, Tensor]] = []
        self._is_clear = True

    @torch.no_grad()
    def start(self, sample: int | None) -> int:
        """Before backward passes at a sample, or at the next one: make room for its gradients.

        Returns:
            The number of the sample.
        """
        for flat in self._flats:
            flat.require_trainable()
        self._refuse_others()
        if sample is None:
            sample = max(self._samples, default=-1) + 1
        self._earlier = []
        if not self._samples:
            if not self._is_clear:
                # The last step has used them up.
                self._zero()
            self._is_clear = False
        elif self._samples == [sample]:
            self._gather()
        else:
            self._gather()
            for flat, deviation in zip(self._flats, self.deviations):
                total = len(self._samples) * flat.gradient.to(flat.wide_dtype)
                self._earlier.append((total, total * deviation))
            self._zero()
        self._expect(True)
        return sample

    @torch.no_grad()
    def end(self, sample: int) -> None:
        """After them: keep the gradients, averaged with those of earlier samples."""
        self._expect(False)
        self._gather()
        if sample not in self._samples:
            self._samples.append(sample)
        number = len(self._samples)
        for flat, deviation, (total, total_product) in zip(
            self._flats, self.deviations, self._earlier
        ):
            gradient = flat.gradient.to(flat.wide_dtype)
            product = (total_product + deviation * gradient) / number
            flat.gradient.copy_((total + gradient) / number)
            # The deviation that gives this product with this gradient, and scales with it if the
            # gradient is clipped. Where the gradients cancel to the last bit, none does.
            deviation.copy_((product / flat.gradient).where(flat.gradient != 0.0, 0.0))

    def require_some(self) -> None:
        """Before a step: refuse to go on without gradients, or with others among them."""
        self._refuse_others()
        if not self._samples:
            raise RuntimeError("step needs a backward pass inside `sampled_weights()` first")
        self._gather()

    def forget(self) -> None:
        """Nothing waits any more; what `.grad` shows is cleared before the next sample."""
        self._expect(False)
        self._samples, self._is_clear = [], False

    def clear(self, is_sampling: bool) -> None:
        """Zero `.grad`; outside a sample, this also forgets the samples before."""
        self._zero()
        if not is_sampling:
            self._samples, self._is_clear = [], True

    def _refuse_others(self) -> None:
        """Refuse gradients that were not taken at a sample: they say nothing of the Hessian."""
        if all(flat.are_gradients_gone for flat in self._flats):
            self.forget()
        if any(flat.has_unexpected_gradients() for flat in self._flats):
            raise RuntimeError(
                "a backward pass ran outside `sampled_weights()`, at the mean instead of at a "
                "sample; put every forward and backward pass inside it, or clear the gradients. "
                "To accumulate gradients, Lightning needs the callback "
                "epigrok.integrations.lightning.SampledWeights; Transformers needs "
                "epigrok.integrations.transformers.IVONTrainer"
            )

    def _expect(self, is_expecting: bool) -> None:
        for flat in self._flats:
            flat.watch.is_expecting = is_expecting

    def _gather(self) -> None:
        for flat in self._flats:
            flat.gather_gradients()

    def _zero(self) -> None:
        for flat in self._flats:
            flat.zero_gradients()
