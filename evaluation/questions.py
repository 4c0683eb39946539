"""Questions with contexts and answers: files of SQuAD v2 and of HotpotQA."""

import dataclasses
import json
import pathlib
import random

from evaluation.failure import BadInput


@dataclasses.dataclass(frozen=True)
class Question:
    context: str
    question: str
    answers: tuple[str, ...]  # empty: the context does not answer it


def read_questions(path: str) -> list[Question]:
    """All questions of a file, whose format its content tells."""
    try:
        content = json.loads(pathlib.Path(path).read_bytes())
    except OSError as error:
        raise BadInput(f"{path}: {error.strerror}") from None
    except (ValueError, RecursionError) as error:
        raise BadInput(f"{path}: not JSON ({error})") from None
    try:
        if isinstance(content, dict) and isinstance(content.get("data"), list):
            found = list(_squad(content["data"]))
        elif isinstance(content, list):
            found = list(map(_hotpot, content))
        else:
            raise BadInput(
                f"{path}: neither SQuAD v2 (an object with a list `data`) nor "
                "HotpotQA (a list of questions)")
    except KeyError as error:
        raise BadInput(f"{path}: an entry lacks {error}") from None
    except (TypeError, ValueError, AttributeError):
        raise BadInput(f"{path}: an entry is neither SQuAD v2's nor HotpotQA's"
                       ) from None
    if not found:
        raise BadInput(f"{path}: holds no questions")
    return found


def choose(questions: list[Question], count: int, seed: int) -> list[Question]:
    """`count` of them, at random, in the file's order; 0: all."""
    if count == 0 or count >= len(questions):
        return questions
    chosen = random.Random(seed).sample(range(len(questions)), count)
    return [questions[index] for index in sorted(chosen)]


def _squad(articles):
    for article in articles:
        for paragraph in article["paragraphs"]:
            for item in paragraph["qas"]:
                texts = [_text(answer["text"]) for answer in item["answers"]]
                yield Question(context=_text(paragraph["context"]),
                               question=_text(item["question"]),
                               answers=tuple(texts))


def _hotpot(item):
    passages = []
    for title, sentences in item["context"]:
        sentences = "".join(map(_text, sentences)).strip()
        passages.append(f"{_text(title)}: {sentences}")
    return Question(context="\n".join(passages),
                    question=_text(item["question"]),
                    answers=(_text(item["answer"]),))


def _text(value):
    if not isinstance(value, str):
        raise TypeError
    value.encode()  # fails for half of a surrogate pair, as JSON may hold
    return value
