#!/usr/bin/env python3
"""Which instructions of 512 bits share pipes: ns of loops on registers, printed one per line. Needs gcc and AVX-512 with VNNI, VBMI and GFNI.

    python3 pipes.py > pipes.txt
"""

import subprocess
import tempfile
from pathlib import Path

A, B = "%%zmm30", "%%zmm31"
FORMS = {
    "vpdpbusd": f"vpdpbusd {A},{B},%%zmm{{n}}", "vpmaddubsw": f"vpmaddubsw {A},{B},%%zmm{{n}}",
    "vpermb": f"vpermb {A},{B},%%zmm{{n}}", "vpshufb": f"vpshufb {A},{B},%%zmm{{n}}",
    "vpsrlw": f"vpsrlw $4,{A},%%zmm{{n}}", "vpsrlvw": f"vpsrlvw {B},{A},%%zmm{{n}}",
    "vprord": f"vprord $4,{A},%%zmm{{n}}", "vpshrdw": f"vpshrdw $4,{A},{A},%%zmm{{n}}",
    "vpmultishiftqb": f"vpmultishiftqb {A},{B},%%zmm{{n}}", "vgf2p8affineqb": f"vgf2p8affineqb $0,{A},{B},%%zmm{{n}}",
    "vpmulhuw": f"vpmulhuw {A},{B},%%zmm{{n}}", "vcvtdq2ps": f"vcvtdq2ps {A},%%zmm{{n}}",
    "vaddps": f"vaddps {A},{B},%%zmm{{n}}", "vfmadd231ps": f"vfmadd231ps {A},{B},%%zmm{{n}}",
    "vpaddw": f"vpaddw {A},{B},%%zmm{{n}}", "vpandd": f"vpandd {A},{B},%%zmm{{n}}",
    "load": "vmovdqu64 (%1),%%zmm{n}", "prefetcht1": "prefetcht1 (%1)",
}
ITERATIONS = 50_000


def spread(loop):
    """The instructions of a loop, each kind evenly over it."""
    slots = sorted(((i + 0.5) / count, form) for form, count in loop for i in range(count))
    return [FORMS[form].format(n=n % 28) for n, (_, form) in enumerate(slots)]


def loops():
    for form in list(FORMS)[2:-2]:
        yield [(form, 8)]
        yield [("vpermb", 8), (form, 4)]
        yield [("vpdpbusd", 8), (form, 4)]
        yield [("vpermb", 8), ("vpdpbusd", 8), (form, 4)]
    yield [("vpdpbusd", 8)]
    yield [("vpermb", 8), ("vpdpbusd", 8)]
    yield [("vpmaddubsw", 8)]
    for shift in ("vpsrlw", "vpmulhuw", "vgf2p8affineqb"):
        yield [("load", 4), ("vpdpbusd", 8), ("vpermb", 8), (shift, 4), ("prefetcht1", 4)]


def source():
    lines = ["#include <stdint.h>", "#include <stdio.h>", "#include <time.h>",
             "static char memory[64] __attribute__((aligned(64)));",
             "static double now(void) { struct timespec t; clock_gettime(CLOCK_MONOTONIC, &t); return t.tv_sec * 1e9 + t.tv_nsec; }",
             "int main(void) {"]
    for loop in loops():
        body = "\\n".join(spread(loop))
        name = ", ".join(f"{count} {form}" for form, count in loop)
        lines.append(f"""{{ double best = 1e18; for (int r = 0; r < 7; r++) {{ uint64_t n = {ITERATIONS}; char *p = memory; double t = now();
  __asm__ volatile("1:\\n{body}\\ndec %0\\njnz 1b" : "+r"(n), "+r"(p) : : "cc", "memory"); t = now() - t; if (t < best) best = t; }}
  printf("%-72s %.2f ns\\n", "{name}", best / {ITERATIONS}); }}""")
    return "\n".join(lines + ["}"])


with tempfile.TemporaryDirectory() as place:
    program = Path(place) / "pipes"
    subprocess.run(["gcc", "-O1", "-x", "c", "-", "-o", program], input=source(), text=True, check=True)
    subprocess.run([program], check=True)
