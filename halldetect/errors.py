"""Every error the method raises on purpose; each says what is wrong, where, and what to do."""

from __future__ import annotations


class HallDetectError(Exception):
    """Base of all errors raised on purpose."""


class InputError(HallDetectError):
    """The caller's text, record, file or option cannot be used as it is."""


class LimitError(InputError):
    """An input is larger than a configured limit; the message names the limit."""


class PolicyError(InputError):
    """A policy contradicts itself; the message lists every fault."""


class ModelError(HallDetectError):
    """A model is missing, broken or unusable; the message says what to set."""


class VerificationError(HallDetectError):
    """The NLI model gave something that is no probability; the message names the pair."""


class UnavailableError(HallDetectError):
    """A server that is needed cannot be reached or does not run; the message says which."""
