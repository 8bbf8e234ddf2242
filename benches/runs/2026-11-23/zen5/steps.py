"""Median time and rate of each kind of decode step from the trace.txt that steps.diff makes kernmill write: python3 steps.py TRACE TICKS_PER_US

Steps whose two workers ended more than 15 us apart are left out (the machine took a CPU away), but for the logits; how many there are is printed.
"""
import statistics
import sys

NAMES = ["qkv", "attention", "linear_residual", "moe_gate_up", "moe_down"]
MEGABYTES = {"qkv": 15.69936, "linear_residual": 12.5453, "moe_gate_up": 35.5854, "moe_down": 17.6947, "logits": 615.34}  # kernmill bench --profile --json
LAYERS = 24
ticks = float(sys.argv[2])
calls = [{}, {}]
for line in open(sys.argv[1]):
    worker, number, step, start, end = map(int, line.split())
    calls[worker][number] = (step, start, end)
both = sorted(set(calls[0]) & set(calls[1]))
steps = sorted({calls[0][number][0] for number in both})
name = {step: "embed" if i == 0 else "logits" if i > LAYERS * len(NAMES) else NAMES[(i - 1) % len(NAMES)] for i, step in enumerate(steps)}
times = {}
for number in both:
    (step, start, end), (other, other_start, other_end) = calls[0][number], calls[1][number]
    if step == other:
        times.setdefault(name[step], []).append(((max(end, other_end) - min(start, other_start)) / ticks, abs(end - other_end) / ticks))
for kind in ["logits", *NAMES]:
    kept = [pair for pair in times[kind] if pair[1] < 15 or kind == "logits"]
    time = statistics.median(pair[0] for pair in kept)
    rate = f"{MEGABYTES[kind] / time * 1e3:5.1f} GB/s" if kind in MEGABYTES else ""
    print(f"{kind:16} {len(kept):5} of {len(times[kind]):5}  {time:8.1f} us  {rate:10}  workers end {statistics.median(pair[1] for pair in kept):.1f} us apart")
