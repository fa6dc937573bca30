"""The scripts that write configs, and the grids of proofs, import what they share from their own folders."""

import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / 'tools/dev'), str(ROOT / 'benchmarks')]
