"""What people read of runs, as text: durations, and words that come from files."""


def duration_text(seconds: float) -> str:
    """`1:05`, `2:00:00`, and from two days on `3d04h`."""
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    if hours >= 48:
        return f"{hours // 24}d{hours % 24:02}h"
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes}:{rest:02}"


def printable(text: str) -> str:
    """Text from files without control characters: no page can hold them, terminals obey them."""
    return "".join(letter if letter.isprintable() else " " for letter in text)
