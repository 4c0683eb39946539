"""Training and held-out text: files to windows of tokens.

JSON lines with `text`, or with `context`, `question` and `answer`; or plain
text, whose documents are separated by blank lines of three line ends or more.
"""

import array
import json
import random
import re

import torch
from tqdm import tqdm

from evaluation.text import pieces


class DataError(ValueError):
    """A data file that cannot be used; the message is for users."""


def read_documents(path: str) -> list[str]:
    """The texts of a .jsonl or .txt file, at least one."""
    content = _read(path).removeprefix("\ufeff")  # a byte order mark
    if path.endswith(".jsonl"):
        documents = [
            _document(path, number, line)
            for number, line in enumerate(content.split("\n"), 1)
            if line.strip()
        ]
    else:
        documents = re.split(r"\n{3,}", content)
    documents = [text for text in documents if text.strip()]
    if not documents:
        raise DataError(f"{path} holds no text")
    return documents


def read_whole(path: str) -> str:
    """A .txt file as it is, as `./strata eval` takes it; the documents of a
    .jsonl with blank lines between."""
    if path.endswith(".jsonl"):
        return "\n\n".join(read_documents(path))
    text = _read(path, newline="")
    if not text.strip():
        raise DataError(f"{path} holds no text")
    return text


def _read(path, newline=None):
    try:
        with open(path, encoding="utf-8", newline=newline) as file:
            return file.read()
    except OSError as error:
        raise DataError(f"{path}: {error.strerror}") from None
    except UnicodeDecodeError as error:
        raise DataError(
            f"{path}: not UTF-8 text (byte {error.start})"
        ) from None


def _document(path, number, line):
    try:
        record = json.loads(line)
    except (ValueError, RecursionError) as error:
        raise DataError(f"{path}, line {number}: {error}") from None
    text = _text_of(record)
    if text is None:
        raise DataError(
            f"{path}, line {number}: needs 'text', or 'context', "
            "'question' and 'answer', as strings"
        )
    try:
        text.encode()
    except UnicodeEncodeError as error:  # half of a surrogate pair
        raise DataError(f"{path}, line {number}: {error}") from None
    return text


def _text_of(record):
    if not isinstance(record, dict):
        return None
    if isinstance(record.get("text"), str):
        return record["text"]
    parts = [record.get(key) for key in ("context", "question", "answer")]
    if all(isinstance(part, str) for part in parts):
        return "{}\n\nQuestion: {}\nAnswer: {}".format(*parts)
    return None


class TokenWindows:
    """Documents joined by the end-of-text token, cut into windows [length].

    The order is drawn anew for each epoch from the seed; window n of a run is
    the same whether the run was resumed or not.
    """

    def __init__(self, documents, tokenizer, length, seed, shows=False):
        """`shows`: a bar where it takes long."""
        separator = tokenizer.eos_token_id
        stream = array.array("i")
        bar = tqdm(documents, desc="tokens", delay=5, disable=not shows)
        for text in bar:
            # A tokenizer needs some 100 bytes of memory for each token.
            for piece in pieces(text):
                ids = tokenizer(piece, add_special_tokens=False)["input_ids"]
                stream.extend(ids)
            if separator is not None:
                stream.append(separator)
        if len(stream) < length:
            raise DataError(
                f"{len(stream)} tokens of text; a window has {length} "
                "(--sequence_length)"
            )
        self._tokens = torch.frombuffer(stream, dtype=torch.int32)
        self._length = length
        self._seed = seed
        self.num_tokens = len(stream)
        self.largest_token = max(stream)
        self.num_windows = len(stream) // length
        self._epoch, self._order = -1, []

    def window(self, number: int) -> torch.Tensor:
        """Window `number` of the run, [length]; epochs follow one another."""
        epoch, index = divmod(number, self.num_windows)
        if epoch != self._epoch:
            self._epoch = epoch
            self._order = list(range(self.num_windows))
            random.Random(f"{self._seed}/epoch/{epoch}").shuffle(self._order)
        begin = self._order[index] * self._length
        return self._tokens[begin : begin + self._length].long()
