"""`python -m epigrok` is the command line."""

import sys

from epigrok.cli import main

sys.exit(main())
