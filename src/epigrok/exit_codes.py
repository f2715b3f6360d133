"""Exit codes of commands, for shells and for the engines that start workers."""

import os

EXIT_DONE = 0
EXIT_FAILED = 1
EXIT_USER_ERROR = 2
EXIT_HELD = os.EX_TEMPFAIL
"""Another process holds the run."""
EXIT_LOST = 76
"""Another process took the run over while this one was suspended."""
EXIT_STOPPED = 130
"""What shells report after Ctrl-C: the run is saved but not finished."""
