"""Where the embedded stack keeps what: one folder, its home."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from cli.stack.errors import StackError


@dataclass(frozen=True)
class Home:
    """The folders and files under the home folder.

    Parameters
    ----------
    root : Path
        The home folder itself.
    """

    root: Path

    @property
    def postgres(self) -> Path:
        """The database."""
        return self.root / "postgres"

    @property
    def valkey(self) -> Path:
        """The queues."""
        return self.root / "valkey"

    @property
    def logs(self) -> Path:
        """One log for each process."""
        return self.root / "logs"

    @property
    def run(self) -> Path:
        """What is true only while the stack runs."""
        return self.root / "run"

    @property
    def run_file(self) -> Path:
        """What runs where."""
        return self.run / "stack.json"

    @property
    def lock_file(self) -> Path:
        """Held by the one stack that runs here."""
        return self.run / "lock"

    @property
    def flower_password(self) -> Path:
        """Flower can stop workers, so it asks for this."""
        return self.root / "flower-password"

    def create(self) -> None:
        """Make the folders.

        Raises
        ------
        StackError
            They cannot be made or written to.
        """
        try:
            self.root.mkdir(parents=True, exist_ok=True)
            self.logs.mkdir(mode=0o700, exist_ok=True)
            self.run.mkdir(mode=0o700, exist_ok=True)
        except OSError as error:
            raise StackError(
                f"the home folder {self.root} cannot be used ({error.strerror}): set "
                "HALLDETECT_HOME or --home to a folder that you may write to"
            ) from None
