"""Lets the tests of this folder import its witness, `rounding_oracle`, by name."""

import sys
from pathlib import Path

sys.path.append(str(Path(__file__).parent))
