"""Resource accounting for language models: count it, predict it, measure it."""

__version__ = "0.1.0"
