"""The cost of one line as a report."""

from __future__ import annotations

from sixnd.machines import Machine, roofline_seconds
from sixnd.notation.einops import LineCost
from sixnd.reporting.machine_report import main_format
from sixnd.reporting.report import Column, Report, Table
from sixnd.units import format_bytes, format_flops, format_intensity, format_seconds


def einops_report(line: str, answer: LineCost, format: str, machine: Machine) -> Report:
    """Lay out FLOPs with their formula, bytes, layout, order, and what bounds the line on a machine."""
    rows = [
        ("FLOPs", format_flops(answer.flops), f"{answer.formula} = {answer.flops:,}"),
        ("read", format_bytes(answer.read_bytes), f"{answer.read_bytes:,} bytes in {format}"),
        ("written", format_bytes(answer.written_bytes), f"{answer.written_bytes:,} bytes"),
        ("layout", answer.layout, _LAYOUTS[answer.layout]),
        ("result", " x ".join(map(str, answer.out_shape)) or "scalar", ""),
    ]
    if answer.comparisons:
        rows.insert(1, ("comparisons", f"{answer.comparisons:,}", "not FLOPs"))
    if answer.intensity is not None:
        rows.append(("intensity", format_intensity(answer.intensity), "FLOPs / bytes moved"))
    if answer.hidden_copy_bytes:
        what = "torch.einsum also copies operands into matmul layout"
        rows.append(("hidden copies", format_bytes(answer.hidden_copy_bytes), what))
    if len(answer.order) > 1:
        rows += [(f"step {i + 1}", "", step) for i, step in enumerate(answer.order)]
        saved = f"left to right: {format_flops(answer.flops_left_to_right)}"
        rows.append(("largest in between", f"{answer.peak_intermediate_elements:,} elements", saved))
    moved = answer.read_bytes + answer.written_bytes
    time = roofline_seconds(answer.flops, moved, machine, main_format(machine))
    if moved:
        rows.append((f"on {machine.name}", format_seconds(time.seconds), f"ideal, bound by {time.bound}"))
    return Report(
        "einops",
        f"{line}: {format_flops(answer.flops)}, {format_bytes(moved)} moved, {_VERDICTS[answer.layout]}.",
        None,
        (Table(answer.op, (Column("what"), Column("value", "right"), Column("how")), tuple(rows)),),
        (
            "a multiply is one FLOP and an add is one; each operand is read once and each result written once",
            *answer.notes,
        ),
        data={
            "schema": "sixnd.einops/1",
            "op": answer.op,
            "flops": answer.flops,
            "formula": answer.formula,
            "comparisons": answer.comparisons,
            "read_bytes": answer.read_bytes,
            "written_bytes": answer.written_bytes,
            "intensity": answer.intensity,
            "layout": answer.layout,
            "out_shape": list(answer.out_shape),
            "hidden_copy_bytes": answer.hidden_copy_bytes,
            "order": list(answer.order),
            "flops_left_to_right": answer.flops_left_to_right,
            "peak_intermediate_elements": answer.peak_intermediate_elements,
        },
    )


_LAYOUTS = {
    "view": "the same memory under another shape: nothing moves",
    "copy": "the elements do not lie in the order asked for: they are written anew",
    "compute": "new numbers",
}
_VERDICTS = {"view": "a view", "copy": "a copy", "compute": "computed"}
