"""An encoder that computes each batch once, for the many tests that begin with the same audits."""

from __future__ import annotations

from functools import cache


class RememberingModel:
    """Answers what its model answered to the same batch before; else it asks the model."""

    def __init__(self, model):
        self._model = model
        self._known = {}

    def __getattr__(self, name):
        return getattr(self._model, name)

    def logits(self, batch):
        inputs = (batch.input_ids, batch.attention_mask, batch.token_type_ids)
        key = (batch.input_ids.shape, *(array.tobytes() for array in inputs))
        if key not in self._known:
            self._known[key] = self._model.logits(batch)
        return self._known[key].copy()


@cache
def remembering(model):
    """Return the one `RememberingModel` of a model."""
    return RememberingModel(model)
