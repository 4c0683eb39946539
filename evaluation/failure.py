"""What a user is told, in one line, before a program ends."""


class Failure(Exception):
    """Something did not work: exit status 1."""

    status = 1


class BadInput(Failure):
    """A flag or a file is wrong: exit status 2."""

    status = 2


def told(error: OSError) -> str:
    """What the system says, without the number of the error."""
    if error.filename is None or not error.strerror:
        return str(error)
    return f"{error.filename}: {error.strerror}"
