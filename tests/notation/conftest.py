"""Lets the tests of this folder import the programs that they share, `lines`, by name."""

import sys
from pathlib import Path

sys.path.append(str(Path(__file__).parent))
