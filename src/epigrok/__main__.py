"""The command `epigrok`, also as `python -m epigrok`: from here on Ctrl-C shows no traceback."""

import sys


def main() -> int:
    """Run the command line."""
    try:
        # Imported here, because somebody may press Ctrl-C while it loads.
        from epigrok.cli import main as run

        return run()
    except KeyboardInterrupt:
        from epigrok.exit_codes import EXIT_STOPPED

        return EXIT_STOPPED


if __name__ == "__main__":
    sys.exit(main())
