"""What operators are called in the views of a profile, and which of them do the same work."""

from __future__ import annotations

from course_lib.speech.operator_work import CONVOLUTIONS, HANDING_ON, HANDS_ON

#: What carries out a convolution on some device: one family, whichever implementation torch chooses.
CONVOLUTION = "convolution"
PRODUCTS = frozenset({"aten::addmm", "aten::mm", "aten::bmm", "aten::baddbmm"})
_FAMILIES = {
    **dict.fromkeys(HANDS_ON, HANDING_ON),
    **dict.fromkeys(CONVOLUTIONS, CONVOLUTION),
    "aten::native_layer_norm": "layer norm",
    "aten::native_batch_norm": "batch norm",
    "aten::cudnn_batch_norm": "batch norm",
    "aten::_softmax": "softmax",
}
#: How an operator is drawn: by the kind of its work.
KINDS = ("product", "convolution", "other")


def short(name: str) -> str:
    """Return an operator's name without the library it is from."""
    return name.removeprefix("aten::")


def family(name: str) -> str:
    """Return the name of the family that an operator belongs to; most are one of their own."""
    return _FAMILIES.get(name, short(name))


def kind(name: str) -> str:
    """Return which of KINDS an operator's work is."""
    if name in PRODUCTS:
        return "product"
    return "convolution" if name in CONVOLUTIONS else "other"
