"""How a command ended: for shells, and for the engines that start workers."""

import os

EXIT_DONE = 0
EXIT_FAILED = 1
EXIT_USER_ERROR = 2
EXIT_HELD = os.EX_TEMPFAIL
"""Somebody else is working on the run."""
EXIT_LOST = 76
"""Somebody else took the run over while this process hung; nothing was changed since."""
EXIT_STOPPED = 130
"""As a shell reports a program ended by Ctrl-C: a run is saved, not finished."""
