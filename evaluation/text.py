"""Texts, as tokens in windows: what losses are measured on."""

import pathlib
import re

from evaluation.failure import BadInput

# Between two words every byte-level BPE tokenizer cuts, so pieces that begin
# there have the tokens that they have within the whole.
# Chinese has no blanks; its commas and full stops go with what follows.
_BETWEEN_WORDS = re.compile(r"(?<=[^\W\d_])(?= [^\W\d_]|[，。])")
_PIECE_CHARS = 1 << 15


def read_text(path: str) -> str:
    try:
        text = pathlib.Path(path).read_bytes().decode("utf-8")
    except OSError as error:
        raise BadInput(f"{path}: {error.strerror}") from None
    except UnicodeDecodeError as error:
        raise BadInput(f"{path}: not UTF-8 text (byte {error.start})") from None
    if not text.strip():
        raise BadInput(f"{path}: the file is empty")
    return text


def pieces(text: str, size: int = _PIECE_CHARS):
    """Cuts `text` between words into pieces of at least `size` characters."""
    begin = 0
    while begin < len(text):
        cut = _BETWEEN_WORDS.search(text, begin + size)
        end = cut.start() if cut else len(text)
        yield text[begin:end]
        begin = end


def tokenize(connection, text: str, max_tokens: int = 0) -> list[int]:
    """The tokens of `text` without BOS; the first `max_tokens`, unless 0."""
    ids = []
    for piece in pieces(text):
        ids += connection.tokenize(piece)
        if 0 < max_tokens <= len(ids):
            return ids[:max_tokens]
    return ids


def windows(ids: list[int], size: int) -> list[list[int]]:
    """Consecutive windows of `size` tokens; a rest that fills none is left."""
    return [ids[begin:begin + size]
            for begin in range(0, len(ids) - size + 1, size)]
