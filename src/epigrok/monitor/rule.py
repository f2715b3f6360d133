"""The constants of the rule that finds the state of a watched set, and where they come from."""

from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True)
class StateRule:
    """The constants of the rule, and the runs of `benchmarks/detection` that they were chosen on.

    - `threshold`, `deviations`: `development.py` and `unseen_1.py`.
    - `held_threshold`, `fresh_threshold`, `stretch`, `may_fall_to`: these, and eight runs of
      `unseen_3.py`.
    - `seen_steady_from`, `kept_from`, `spike_over`: 26 runs of `unseen_1.py` and `unseen_3.py`.
    - `by_heart_share`, `by_heart_deviations`: coin flips, and 188 runs up to `unseen_4.py`. The
      width of the kernel on first features (`by_heart/`): transformers among coin flips.
    - `taken_back_share`, `taken_back_from`: coin flips, and a network that was right.
    - `head_threshold` and what follows it: see `docs/experiment-log.md`.

    `unseen_7.py` tests them all: `docs/results/detection`. A ratio "two standard errors below" is
    the lower end of its interval.
    """

    threshold: float = 0.37
    """Ratio that separates sets that have generalised from sets that have not. As low as it can be,
    because a set that is watched while it groks should not be missed: two standard errors below,
    ratios were at most 0.35 where a set had not generalised and 0.38 or more where it had."""
    deviations: float = 2.0
    """Standard errors by which a ratio must pass the threshold."""
    steady_from: float = 0.8
    """Agreement with the answers of an earlier look, above chance, from which they are steady."""
    steady_over: float = 1.1
    """Steps over those of that earlier look, at least. Looks in the benchmark are 1.14 times apart
    or more; where they are closer, answers have had no time to change between two."""
    held_threshold: float = 0.5
    """What the ratio must pass for a set that was never seen memorising and whose ratio has held.
    Two standard errors below, ratios of memorisers were then at most 0.38 (connected graphs, little
    data), and all that generalised at once passed 0.5."""
    fresh_threshold: float = 0.74
    """What the ratio must pass for a set of which nothing is known yet. Two standard errors below,
    ratios of random and of half-learnt labels just after their fit were at most 0.48."""
    stretch: float = 1.5
    """Steps, over those at which a ratio was first above the threshold, until it has held. At 1.5
    times the step of their fit, memorisers had lost most of what they were to lose."""
    may_fall_to: float = 0.8
    """Share of that first ratio which must be left after the stretch; a fall to less begins another
    one. What generalises at once has a ratio that stays or rises."""
    fitted_accuracy: float = 0.95
    """Training accuracy, above chance, at which fitting ends."""
    fitted_confidence: float = 0.8
    """The same for exp(-training loss) and for the confidence on seen inputs."""
    seen_steady_from: float | None = 0.95
    """Agreement of the answers to seen inputs with those of an earlier look, above chance, that
    confidence needs beside it: random labels can be answered with confidence before they are
    fitted, and then the answers still change. With 0.95 the training accuracy above chance was 0.94
    or more where labels were random when the gate opened; with 0.9 `spirals-random` is announced.
    None asks for nothing."""
    fit_may_fall_by: float = 0.15
    """A training set that was fitted stays so down to this much below."""
    kept_from: float = 0.5
    """Agreement with the answers of the first sure look, above chance, below which most changed. If
    nine in ten were right then, at most six in ten are now; where nine in ten are right at both
    looks, eight in ten agree."""
    spike_over: float = 1.02
    """Steps over those at which answers were first seen changed, until that is no spike."""
    by_heart_share: float = 0.5
    """Rows are learnt by heart where the predictability of seen answers is below this share of that
    of watched ones."""
    by_heart_deviations: float = 3.0
    """Standard errors by which it must lie below that of watched ones at least."""
    taken_back_share: float = 0.25
    """The same share for a set that was announced already, which is then taken back."""
    taken_back_from: float = 0.25
    """Predictability of watched answers, at least, for that. Below it the announced answers hardly
    follow from the seen ones, and chance puts seen ones below them now and then: a CNN that was
    right on 95 % had 0.1. Coin flips learnt from all the rows that are read had 0.37 or more."""
    head_threshold: float = 0.37
    """What the ratio at the head must surely pass, whatever the whole network says."""
    unlearnt_up_to: float = 0.25
    """Agreement of the answers to seen inputs with those of an earlier look, above chance, up to
    which the seen inputs had hardly been learnt at that look."""
    settled_ahead_from: float = 0.2
    """How much more of the watched answers than of the seen ones may have stood then. Where rows
    were learnt by heart with large weights it was 0.3 to 0.7; where a rule was learnt, 0.04 at the
    most."""
    settled_ahead_deviations: float = 3.0
    """Standard errors that it must be above zero at least."""
    ask_again_over: float = 1.1
    """Steps, over those at which the whole network did not confirm a change, until it is asked
    again."""
