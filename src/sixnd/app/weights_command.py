"""`sixnd weights`: what is in a .safetensors file, by its header alone."""

from __future__ import annotations

from pathlib import Path

from sixnd.app.output import TABLES, Output, emit


def weights(path: Path, /, *, config: str | None = None, output: Output = TABLES) -> int:
    """What is in a .safetensors file, an index, or a folder of them: tensors, shapes, formats, bytes, by headers alone.

    Parameters
    ----------
    path
        A .safetensors file, a model.safetensors.index.json, or a folder.
    config
        A known model or config.json to compare with. Default: the config.json beside the file, if there is one.
    """
    from sixnd.models.config import load_architecture
    from sixnd.models.weight_check import check_weights
    from sixnd.models.weights import read_weights
    from sixnd.reporting.model_report import count, weights_report

    held = read_weights(path)
    beside = (path if path.is_dir() else path.parent) / "config.json"
    source = config or (str(beside) if beside.is_file() else None)
    check = None
    if source is not None:
        architecture = load_architecture(source)
        check = check_weights(held, architecture, count(architecture).total)
    emit(weights_report(held, check, path.name), output)
    return 0 if check is None or check.unexplained == 0 else 1
