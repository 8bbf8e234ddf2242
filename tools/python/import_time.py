#!/usr/bin/env python3
"""How long `import kernmill` takes: the best of several interpreters. 50 ms are meant."""

import subprocess
import sys
import time

ROUNDS = 7


def seconds(code: str) -> float:
    """Time of the quickest of several interpreters that run this."""
    best = float("inf")
    for _ in range(ROUNDS):
        start = time.perf_counter()
        subprocess.run([sys.executable, "-c", code], check=True)
        best = min(best, time.perf_counter() - start)
    return best


nothing, package = seconds("pass"), seconds("import kernmill")
mine, others = (package - nothing) * 1000, nothing * 1000
print(f"import kernmill: {mine:.0f} ms, beside {others:.0f} ms of an interpreter")
