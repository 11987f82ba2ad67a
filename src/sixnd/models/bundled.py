"""Which models are described in the package, and which of them does a name mean?

`bundled/*.json` hold the sizes of well-known models under the keys of their families, no more; a model's name is its
file's. Names are matched without regard to case, to `_` for `-`, and to an organisation before a slash.
"""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path

from sixnd.errors import ConfigError, near_miss

FOLDER = Path(__file__).parent / "bundled"
ENDINGS = ("-hf", "-v0.1", "-base", "-pt", "-it", "-instruct", "-chat", "-bf16")


@lru_cache(maxsize=1)
def bundled_names() -> tuple[str, ...]:
    """List the names of the bundled models, sorted.

    >>> "llama-3-8b" in bundled_names()
    True
    """
    return tuple(sorted(path.stem for path in FOLDER.glob("*.json")))


def bundled_path(path_or_name: str) -> Path | None:
    """Return the file of the bundled model that a name means, or None where the words are a path.

    Raises `ConfigError`, with the near misses, where they are neither.

    >>> bundled_path("Meta-Llama/Meta-Llama-3_8B").name
    'llama-3-8b.json'
    """
    if path_or_name in bundled_names():
        return FOLDER / f"{path_or_name}.json"
    if not path_or_name.strip():
        raise ConfigError("no model is named: give a name, a config.json, or a folder that holds one")
    if _is_path(path_or_name):
        return None
    name = normalise(path_or_name)
    if name in bundled_names():
        return FOLDER / f"{name}.json"
    close = near_miss(name, bundled_names()) or "; `sixnd models` lists the names that are known"
    raise ConfigError(f"no bundled model, file or folder is called {path_or_name[:200]!r}{close}")


def normalise(name: str) -> str:
    """Return the name as the bundled files spell it.

    >>> normalise("meta-llama/Llama-3.1-8B-Instruct")
    'llama-3.1-8b'
    """
    name = name.strip().rsplit("/", 1)[-1].lower().replace("_", "-")
    name = name.removeprefix("meta-")
    for ending in ENDINGS:
        if name.endswith(ending) and name not in bundled_names():
            name = name.removesuffix(ending)
    return name


def _is_path(words: str) -> bool:
    if words.endswith(".json") or words.startswith((".", "/", "~")) or "\\" in words or words.count("/") > 1:
        return True
    try:
        return Path(words).exists()
    except (OSError, ValueError):
        return False
