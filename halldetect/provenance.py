"""What produced a number: enough to name the exact model again."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from typing import Any


@dataclass(frozen=True, slots=True)
class ModelProvenance:
    """Identity of one loaded model, recorded with every audit.

    Parameters
    ----------
    name : str
        Human-readable name (hub id, or the folder or file name).
    backend : str
        ``onnx``, ``torch``, ``llama`` or ``sentences``.
    revision : str
        Pinned hub revision, or ``sha256:...`` of the weight file; empty for no model.
    dtype : str
        Numeric form the forward pass ran in (``float32``, ``float16``, ``Q4_1``, ...).
    device : str
        ``cpu``, ``cuda:0``, ...
    libraries : dict of str to str
        Versions of the libraries that computed.
    """

    name: str
    backend: str
    revision: str
    dtype: str
    device: str
    libraries: dict[str, str] = field(default_factory=dict)

    def to_json(self) -> dict[str, Any]:
        """Return the provenance as plain JSON values."""
        return asdict(self)
