"""Prints an oracle file's prompt as the JSON list that `kernmill logits --tokens` reads.

    python tools/oracle/print_tokens.py NAME/oracle.safetensors > tokens.json
"""

import argparse
import json
from pathlib import Path

from safetensors.torch import load_file

if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("oracle", type=Path)
    print(json.dumps(load_file(parser.parse_args().oracle)["tokens"].tolist()))
