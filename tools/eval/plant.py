#!/usr/bin/env python3
"""Plants a loss: `tools/eval/plant.py FROM.gguf TO.gguf 15` rounds one layer of a Q4_1 file to 3 bits.

The type stays as it is: of the sixteen steps of a block, eight are left. Needs gguf and numpy (PyPI).
"""

import shutil
import sys

import numpy as np
from gguf import GGMLQuantizationType, GGUFReader


def main():
    source, target, layer = sys.argv[1:]
    shutil.copyfile(source, target)
    changed = 0
    for tensor in GGUFReader(target, "r+").tensors:
        if tensor.name.startswith(f"blk.{layer}.") and tensor.tensor_type == GGMLQuantizationType.Q4_1:
            halves = tensor.data.reshape(-1, 20)[:, 4:]
            steps = np.rint(np.rint(np.arange(16) * (7 / 15)) * (15 / 7)).astype(np.uint8)
            halves[:] = steps[halves & 15] | steps[halves >> 4] << 4
            changed += 1
    print(f"{changed} matrices")


if __name__ == "__main__":
    main()
