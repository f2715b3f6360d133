"""The one exception a user can cause and the command line turns into a sentence."""


class UserError(ValueError):
    """A mistake in what was asked for: shown as one sentence, exit code 2, no traceback."""
