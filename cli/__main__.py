"""The start of the command: the console script, and ``python -m cli``."""

from __future__ import annotations

import sys


def main() -> None:
    """Run the command, and let an interrupt while it still loads be one like any later."""
    try:
        from cli.main import main as run

        run()
    except KeyboardInterrupt:
        sys.stderr.write("halldetect: interrupted\n")
        sys.exit(130)


if __name__ == "__main__":
    main()
