"""Time and check attention kernels on a GPU: those in use against tilings of their candidates.

    python -m benchmarks.attention_variants [forward|backward] [32|64|128]

Every candidate runs in a process of its own, so that one that fails takes no other down. All
compile and check at the same time; then they are timed one after the other.
"""

import json
import math
import os
import queue
import statistics
import subprocess
import sys
import threading
import time

ROWS, HEADS, LENGTH, TOKENS = 1024, 4, 95, 32
KINDS = ("everywhere", "table", "asking")
DEADLINE_S = float(os.environ.get("SECONDS_AT_MOST", "90"))

# Queries, keys, warps, registers (None: no limit) and, backward, whether turned queries are kept.
FORWARD = {
    32: [(32, 32, 1, 128), (32, 32, 1, 168), (32, 32, 1, None), (16, 16, 1, 128), (32, 32, 2, 128)],
    64: [(64, 32, 4, None), (64, 32, 4, 96), (16, 16, 1, 255), (32, 32, 2, 168), (64, 64, 4, None)],
    128: [(64, 32, 4, 168), (64, 32, 4, 128), (32, 32, 2, 255), (64, 32, 4, None)],
}
# With 64 queries, 64 keys and 4 warps the backward pass is wrong at head width 32 and reads past
# its arrays at 64 (torch 2.11, triton 3.6), though the same kernel is right with 8 warps.
BACKWARD = {
    32: [
        (32, 32, 2, 128, False), (32, 32, 2, 128, True), (32, 32, 2, 168, False),
        (32, 32, 2, 168, True), (32, 32, 1, 255, False), (32, 32, 1, 255, True),
        (32, 64, 4, 128, True),
    ],
    64: [
        (32, 32, 2, 255, False), (32, 32, 2, 255, True), (32, 32, 2, 168, False),
        (32, 32, 2, 168, True), (16, 16, 1, 255, True), (32, 64, 4, 168, True),
        (32, 64, 4, 128, True), (32, 64, 4, 255, True),
    ],
    128: [
        (32, 64, 4, 255, True), (32, 64, 4, 255, False), (32, 32, 4, 168, True),
        (32, 32, 4, 168, False), (32, 32, 4, 255, True), (64, 64, 4, 255, True),
    ],
}  # fmt: skip


class Case:
    """Inputs of one kind and what float64 makes of them."""

    def __init__(self, head_width: int, kind: str, rows: int, seed: int) -> None:
        import torch

        from epigrok.model.attention import rotary_tables
        from epigrok.model.kernels.attention import EVERYWHERE, Asking

        generator = torch.Generator("cuda").manual_seed(seed)

        def normal(*shape: int) -> torch.Tensor:
            return torch.randn(shape, device="cuda", generator=generator).bfloat16()

        self.kind, self.rows, self.head_width = kind, rows, head_width
        self.rotary = rotary_tables(128, head_width).cuda()
        width = HEADS * head_width
        self.tokens, self.asking, number = None, EVERYWHERE, LENGTH
        if kind == "asking":
            self.asking = Asking(1, 3)
            number = len(range(LENGTH)[1::3])
            self.inputs = (
                normal(rows * number, width),
                *normal(rows * LENGTH, 2 * width).chunk(2, dim=1),
            )
        elif kind == "table":
            self.inputs = normal(TOKENS, 3 * width).chunk(3, dim=1)
            chosen = torch.randint(
                TOKENS, (rows * LENGTH,), device="cuda", generator=generator, dtype=torch.int32
            )
            self.tokens = chosen
        else:
            self.inputs = normal(rows * LENGTH, 3 * width).chunk(3, dim=1)
        self.shape = (rows, number, LENGTH)
        self.grad = normal(rows * number, width)
        # For times any numbers of a likely size do; `exact` puts the right ones in.
        self.out = normal(rows * number, width)
        self.norm = torch.full((rows * HEADS, number), 8.0, device="cuda")
        if kind == "asking":
            self.gradients = (
                torch.full_like(self.grad, math.nan),
                *torch.full((rows * LENGTH, 2 * width), math.nan, device="cuda")
                .bfloat16()
                .chunk(2, dim=1),
            )
        else:
            everything = torch.full((rows * LENGTH, 3 * width), math.nan, device="cuda")
            self.gradients = everything.bfloat16().chunk(3, dim=1)

    def exact(self) -> list:
        """Output and gradients in float64; fills in the saved output and normaliser."""
        import torch

        from epigrok.model.attention import rotate

        inputs = self.inputs
        if self.tokens is not None:
            inputs = [part[self.tokens.long()] for part in inputs]
        leaves = [part.double().requires_grad_() for part in inputs]
        q, k, v = (x.view(self.rows, -1, HEADS, self.head_width).transpose(1, 2) for x in leaves)
        rotary = self.rotary.double()
        position = torch.arange(LENGTH, device="cuda")
        asked = position[self.asking.first :: self.asking.step]
        q, k = rotate(q, rotary[:, asked]), rotate(k, rotary[:, :LENGTH])
        scores = q @ k.mT * self.head_width**-0.5
        scores = scores.masked_fill(position[None, :] > asked[:, None], -math.inf)
        norm = scores.logsumexp(dim=-1) / math.log(2)
        out = (
            ((scores - norm[..., None] * math.log(2)).exp() @ v)
            .transpose(1, 2)
            .reshape(self.grad.shape)
        )
        out.backward(self.grad.double())
        self.out.copy_(out.detach())
        self.norm.copy_(norm.detach().reshape(self.norm.shape))
        return [out.detach(), *(leaf.grad for leaf in leaves)]


def kernels(version: str):
    """Modules of the forward and backward pass."""
    if version == "new":
        from benchmarks.attention_candidate import backward, forward

        return forward, backward
    from epigrok.model.kernels import attention, attention_backward

    return attention, attention_backward


def run(direction: str, modules, case: Case):
    forward, backward = modules
    half = case.rotary.half()
    asking = forward.Asking(*case.asking)
    if direction == "forward":
        return forward.attend_forward(case.inputs, case.tokens, half, HEADS, case.shape, asking)
    saved = (case.out, case.norm, case.grad)
    return backward.attend_backward(
        case.inputs, case.tokens, saved, case.gradients, half, HEADS, case.shape, asking
    )


def largest_error(direction: str, modules, head_width: int, kind: str) -> float:
    """The largest relative error of any result; infinite where two runs differ."""
    import torch

    case = Case(head_width, kind, 24, 1)
    exact = case.exact()

    def results() -> list:
        ran = run(direction, modules, case)
        parts = list(ran) if direction == "forward" else list(case.gradients)
        return [part.clone() for part in parts]

    first, second = results(), results()
    if not all(torch.equal(one, other) for one, other in zip(first, second)):
        return math.inf
    if direction == "forward":
        pairs = [(first[0], exact[0]), (first[1], case.norm)]
    else:
        pairs = list(zip(first, exact[1:]))
    return max(((a.double() - b.double()).norm() / b.double().norm()).item() for a, b in pairs)


def microseconds(direction: str, modules, head_width: int, kind: str) -> float:
    """Of one launch inside a graph of several, over inputs that do not all fit the cache."""
    import torch

    cases = [Case(head_width, kind, ROWS, seed) for seed in range(3)]
    stream = torch.cuda.Stream()
    with torch.cuda.stream(stream):
        for case in cases:
            run(direction, modules, case)
    torch.cuda.synchronize()
    graph, calls = torch.cuda.CUDAGraph(), 12
    with torch.cuda.graph(graph):
        for call in range(calls):
            run(direction, modules, cases[call % 3])
    times = []
    for _ in range(9):
        start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        start.record()
        graph.replay()
        end.record()
        torch.cuda.synchronize()
        times.append(start.elapsed_time(end) / calls * 1e3)
    return statistics.median(times)


def worker(direction: str, head_width: int, tiling: list | None) -> None:
    """Check, say so, wait for one's turn, time."""
    version = "before" if tiling is None else "new"
    try:
        import torch

        modules = kernels(version)
        if tiling is not None:
            chosen = modules[0].Tiling(*tiling)
            table = modules[0].FORWARD if direction == "forward" else modules[1].BACKWARD
            table[head_width] = chosen
        errors = {}
        for kind in KINDS:
            try:
                errors[kind] = largest_error(direction, modules, head_width, kind)
                torch.cuda.synchronize()
            except Exception as error:
                errors[kind] = f"{type(error).__name__}: {str(error).strip().splitlines()[0][:90]}"
        print(json.dumps({"errors": errors}), flush=True)
        sys.stdin.readline()
        times = {}
        for kind in KINDS:
            if not isinstance(errors[kind], str):
                times[kind] = microseconds(direction, modules, head_width, kind)
        print(json.dumps({"times": times}), flush=True)
    except Exception as error:
        first_line = f"{type(error).__name__}: {str(error).strip().splitlines()[0][:90]}"
        print(json.dumps({"failed": first_line}), flush=True)


class Candidate:
    """One process."""

    def __init__(self, direction: str, head_width: int, tiling: tuple | None) -> None:
        self.direction, self.head_width, self.tiling = direction, head_width, tiling
        self.name = "before" if tiling is None else str(tiling)
        self.errors: dict = {}
        self.times: dict = {}
        self.failed = ""
        self.process = subprocess.Popen(
            [
                sys.executable,
                "-m",
                "benchmarks.attention_variants",
                json.dumps([direction, head_width, tiling]),
            ],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        )
        self._lines: queue.Queue = queue.Queue()
        threading.Thread(target=self._read, daemon=True).start()

    def _read(self) -> None:
        for line in self.process.stdout:
            self._lines.put(line)
        self._lines.put(None)

    def receive(self, until: float) -> None:
        try:
            line = self._lines.get(timeout=max(0.1, until - time.monotonic()))
        except queue.Empty:
            self.failed = "too late"
            self.process.kill()
            return
        if line is None:
            self.failed = f"process ended with {self.process.wait()}"
            return
        for key, value in json.loads(line).items():
            setattr(self, key, value)

    def time(self, until: float) -> None:
        try:
            self.process.stdin.write("\n")
            self.process.stdin.flush()
        except OSError:
            self.failed = "process ended"
            return
        self.receive(until)

    def line(self) -> str:
        def cell(kind: str) -> str:
            error = self.errors.get(kind)
            if isinstance(error, str) or error is None:
                return "        -      "
            mark = " " if error < 0.01 else "!"
            return f"{self.times.get(kind, math.nan):7.1f} {error:.4f}{mark}"

        problem = self.failed or next((e for e in self.errors.values() if isinstance(e, str)), "")
        cells = "  ".join(cell(kind) for kind in KINDS)
        return f"{self.direction:8} {self.head_width:4} {self.name:26} {cells}  {problem}"


def main(only: list[str]) -> None:
    start = time.monotonic()
    candidates = [
        Candidate(direction, head_width, tiling)
        for direction, table in (("backward", BACKWARD), ("forward", FORWARD))
        for head_width in (128, 64, 32)
        for tiling in (None, *table[head_width])
        if set(only) <= {direction, str(head_width)}
    ]
    for candidate in candidates:
        candidate.receive(start + DEADLINE_S - 20)
    print(f"all checked after {time.monotonic() - start:.0f} s", flush=True)
    candidates.sort(key=lambda c: (c.direction == "backward", c.head_width))
    for candidate in candidates:
        if not candidate.failed:
            candidate.time(start + DEADLINE_S)
        print(candidate.line(), flush=True)
        candidate.process.kill()
    print("\nmicroseconds and relative error (! above 0.01); fastest without an error:")
    print(f"{'':8} {'':4} {'':26} " + "  ".join(f"{kind:15}" for kind in KINDS))
    for direction in ("forward", "backward"):
        for head_width in (32, 64, 128):
            group = [
                c for c in candidates if (c.direction, c.head_width) == (direction, head_width)
            ]
            right = [
                c
                for c in group
                if c.times and all(isinstance(e, float) and e < 0.01 for e in c.errors.values())
            ]
            # Of the presets' blocks, most are asked everywhere.
            right.sort(key=lambda c: c.times["everywhere"])
            for candidate in [c for c in right if c.tiling is None][:1] + right[:2]:
                print(candidate.line())
    print(f"{time.monotonic() - start:.0f} s")


if __name__ == "__main__":
    if sys.argv[-1].startswith("["):
        worker(*json.loads(sys.argv[1]))
    else:
        main(sys.argv[1:])
