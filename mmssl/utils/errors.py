"""The text of errors, in one line, as the tools show it to a user."""


def message_of(error: BaseException) -> str:
    """The message of an error; that of a KeyError without the quotes that ``str()`` puts around it."""
    message = str(error.args[0]) if isinstance(error, KeyError) and error.args else str(error)
    return message or type(error).__name__


def one_line(error: BaseException) -> str:
    """:func:`message_of` without line breaks."""
    return ' '.join(message_of(error).split())
