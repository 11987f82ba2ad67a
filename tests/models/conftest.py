"""Lets the tests of this folder import its witnesses, `oracle` and `witness`, by name."""

import sys
from pathlib import Path

sys.path.append(str(Path(__file__).parent))
