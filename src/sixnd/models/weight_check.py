"""Do the stored weights hold as many parameters as the architecture says, and if not, why?

Files hold more than parameters (a tied head once more, causal masks, extra prediction layers, a vision tower, the
scales of quantised weights) or fewer (a head that is the embedding). Each tensor is sorted by its name, and what is
left over is said to be unexplained.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

from sixnd.errors import ConfigError
from sixnd.models.architecture import Architecture
from sixnd.models.weights import INDEX, SINGLE, Weights, WeightTensor, read_weights

_HEADS = re.compile(r"(^|\.)(lm_head|embed_out|output)\.weight$")
_LAYER = re.compile(r"(^|\.)(layers|h|blocks)\.(\d+)\.")
_PACKED = "quantised weights and their scales, several parameters to a stored value or beside them"
_KINDS = (
    (
        re.compile(r"(^|\.)(vision\w*|visual|multi_modal_projector|audio_tower|mm_projector|connector)\."),
        "a vision or audio part",
    ),
    (re.compile(r"(^|\.)mtp(_\w+)?\."), "multi-token-prediction layers"),
    (re.compile(r"lora_[AB]\b"), "low-rank adapters"),
    (
        re.compile(
            r"(\.(qweight|qzeros|scales|g_idx|absmax|quant_map|nested_\w+|weight_packed|weight_shape|(weight|input)_scale\w*)$)"
        ),
        _PACKED,
    ),
    (re.compile(r"(_scale_inv|_blocks|_scales|\.quant_state\.\w+)$"), _PACKED),
    (re.compile(r"rotary_emb\.inv_freq$"), "rotary angles, a buffer"),
    (re.compile(r"\.(attn|attention)(\.attention)?\.(masked_)?bias$"), "causal masks, a buffer"),
    (re.compile(r"e_score_correction_bias$"), "the router's correction, a buffer"),
)


@dataclass(frozen=True)
class Reason:
    """Why stored and counted parameters differ, and by how much (more stored than counted: above zero)."""

    text: str
    n_values: int


@dataclass(frozen=True)
class WeightCheck:
    """Stored against counted: `difference` is stored minus counted, `unexplained` what no reason covers."""

    stored: int
    counted: int
    reasons: tuple[Reason, ...]

    @property
    def difference(self) -> int:
        """Stored minus counted."""
        return self.stored - self.counted

    @property
    def unexplained(self) -> int:
        """What no reason covers."""
        return self.difference - sum(reason.n_values for reason in self.reasons)


def check_weights(weights: Weights, architecture: Architecture, n_params: int) -> WeightCheck:
    """Compare stored weights with `n_params`, the count made from `architecture`, and name what makes the difference.

    >>> from sixnd.models.config import read_config
    >>> from sixnd.models.weights import WeightTensor, gather
    >>> tiny = read_config({"model_type": "llama", "vocab_size": 100, "tie_word_embeddings": True}, "tiny")
    >>> stored = gather([WeightTensor("lm_head.weight", (100, 4096), "bfloat16", 819200)])
    >>> check_weights(stored, tiny, 0).reasons[0].text
    'the head, which is the embedding, is stored once more'
    """
    sums: dict[str, int] = {}
    for tensor in weights.tensors:
        if text := _kind(tensor, len(architecture.layers)):
            sums[text] = sums.get(text, 0) + tensor.n_values
    heads = [
        tensor
        for tensor in weights.tensors
        if _HEADS.search(tensor.name) and not _kind(tensor, len(architecture.layers))
    ]
    if architecture.tied and heads:
        sums["the head, which is the embedding, is stored once more"] = heads[0].n_values
    if not architecture.tied and not heads and weights.tensors:
        width = architecture.d_embedding or architecture.d_model
        sums["no head is stored: it may be tied to the embedding, though the config says otherwise"] = (
            -width * architecture.vocab
        )
    reasons = tuple(Reason(text, n_values) for text, n_values in sums.items())
    return WeightCheck(weights.n_params, n_params, reasons)


def _kind(tensor: WeightTensor, n_layers: int) -> str:
    """Say what a tensor is if it is not among the counted parameters; empty if it is."""
    for pattern, text in _KINDS:
        if pattern.search(tensor.name):
            return text
    layer = _LAYER.search(tensor.name)
    if layer and int(layer[3][:9]) >= n_layers:
        return "multi-token-prediction layers"
    return ""


def weights_note(model: str, architecture: Architecture, n_params: int) -> str | None:
    """Say how the weights beside a config agree with it; None where the model is a name, or has none beside it."""
    path = Path(model)
    folder = path if path.is_dir() else path.parent
    if not path.exists() or not any((folder / name).is_file() for name in (INDEX, SINGLE)):
        return None
    try:
        check = check_weights(read_weights(folder), architecture, n_params)
    except ConfigError as error:  # an index without its files is common, and no reason to refuse an account
        return f"weights beside the config were not read: {error}"
    reasons = "; ".join(f"{reason.text} ({reason.n_values:+,})" for reason in check.reasons)
    agrees = "agree with the config" if check.unexplained == 0 else f"{check.unexplained:+,} values NOT explained by it"
    return f"weights beside the config: {check.stored:,} values, {agrees}" + (f": {reasons}" if reasons else "")
