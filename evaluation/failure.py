"""What a user is told, in one line, before a program ends."""


class Failure(Exception):
    """Something did not work: exit status 1."""

    status = 1


class BadInput(Failure):
    """A flag or a file is wrong: exit status 2."""

    status = 2
