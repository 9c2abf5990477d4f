"""The processes of the stack together: started, watched, stopped in order."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence

from cli.stack.children import Child, ChildPlan, ChildState

_TICK_SECONDS = 0.1

OnChange = Callable[[Sequence[Child]], None]


class Supervisor:
    """Keeps its children running.

    Parameters
    ----------
    on_change : callable
        Told of all children whenever one of them has another state or process.
    """

    def __init__(self, on_change: OnChange) -> None:
        self.children: list[Child] = []
        self._on_change = on_change
        self._last_seen: list[tuple[ChildState, int | None]] = []

    def add(self, plans: Iterable[ChildPlan]) -> None:
        """Take on children that are to be started later."""
        self.children += [Child(plan) for plan in plans]
        self._tell_of_changes()

    def start(self, names: Collection[str]) -> list[str]:
        """Start the named children; return what to say of them."""
        chosen = [child for child in self.children if child.name in names]
        messages = [message for child in chosen if (message := child.start()) is not None]
        self._tell_of_changes()
        return messages

    def states(self, names: Collection[str]) -> set[ChildState]:
        """Return the states that the named children are in."""
        return {child.state for child in self.children if child.name in names}

    def in_state(self, state: ChildState) -> set[str]:
        """Return the names of the children that are in a state."""
        return {child.name for child in self.children if child.state is state}

    def check(self) -> list[str]:
        """Look at every child, start again what is due; return what to say."""
        messages = [message for child in self.children if (message := child.check()) is not None]
        self._tell_of_changes()
        return messages

    def stop(
        self, names: Collection[str], *, is_urgent: Callable[[], bool], tick: Callable[[], None]
    ) -> Iterator[str]:
        """Stop the named children at once, and yield what to say until all have ended.

        Parameters
        ----------
        names : collection of str
            Whom to stop.
        is_urgent : callable
            True once there is no time for politeness.
        tick : callable
            Called while waiting.
        """
        leaving = [child for child in self.children if child.name in names]
        for child in leaving:
            child.ask_to_stop()
        while any(child.state is not ChildState.STOPPED for child in leaving):
            for child in leaving:
                if is_urgent():
                    child.hurry()
                message = child.check()
                if message is not None:
                    yield message
            self._tell_of_changes()
            tick()
            time.sleep(_TICK_SECONDS)
        self._tell_of_changes()

    def _tell_of_changes(self) -> None:
        seen = [(child.state, child.pid) for child in self.children]
        if seen != self._last_seen:
            self._last_seen = seen
            self._on_change(self.children)
