"""Resource accounting for language models: count it, predict it, measure it.

>>> import sixnd
>>> sixnd.account("llama-3-8b", on="8xh100").model.params.total
8030261248
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from sixnd.errors import SixndError as SixndError
    from sixnd.models.config import load_architecture as load_architecture
    from sixnd.models.config import read_config as read_config
    from sixnd.planning.account import account as account
    from sixnd.planning.account import step_ledger as step_ledger
    from sixnd.planning.napkin import largest_model as largest_model
    from sixnd.planning.napkin import training_time as training_time

__version__ = "0.1.0"

_HOMES = {
    "SixndError": "sixnd.errors",
    "account": "sixnd.planning.account",
    "largest_model": "sixnd.planning.napkin",
    "load_architecture": "sixnd.models.config",
    "read_config": "sixnd.models.config",
    "step_ledger": "sixnd.planning.account",
    "training_time": "sixnd.planning.napkin",
}
__all__ = ["SixndError", "account", "largest_model", "load_architecture", "read_config", "step_ledger", "training_time"]


def __getattr__(name: str) -> Any:
    """Import a front-door name when it is first asked for, so that `import sixnd` itself does no work."""
    if name not in _HOMES:
        raise AttributeError(f"module 'sixnd' has no attribute {name!r}")
    return getattr(import_module(_HOMES[name]), name)


def __dir__() -> list[str]:
    return sorted([*globals(), *_HOMES])
