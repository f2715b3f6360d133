"""The exception for a user's mistake, which the command line prints as one line."""


class UserError(ValueError):
    """A user's mistake: printed as one line, exit code 2, no traceback."""
