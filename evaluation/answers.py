"""Exact match and F1 of answers, as SQuAD 2.0's official script defines them.

Rajpurkar, Jia and Liang, "Know What You Don't Know: Unanswerable Questions for
SQuAD" (2018), evaluate-v2.0.py.
"""

import collections
import re
import string

_ARTICLES = re.compile(r"\b(a|an|the)\b")
_NO_PUNCTUATION = str.maketrans("", "", string.punctuation)

# An answer that says so is none; the official script knows only empty ones.
NO_ANSWER = "unanswerable"


def normalise(text: str) -> str:
    """Lower case, without punctuation, articles and superfluous blanks."""
    text = text.lower().translate(_NO_PUNCTUATION)
    return " ".join(_ARTICLES.sub(" ", text).split())


def f1(gold: str, predicted: str) -> float:
    """F1 of the bags of words; two empty answers have 1."""
    gold_words = normalise(gold).split()
    words = normalise(predicted).split()
    if not gold_words or not words:
        return float(gold_words == words)
    common = collections.Counter(gold_words) & collections.Counter(words)
    num_same = common.total()
    if num_same == 0:
        return 0.0
    precision = num_same / len(words)
    recall = num_same / len(gold_words)
    return 2 * precision * recall / (precision + recall)


def judge(references: tuple[str, ...], predicted: str) -> tuple[float, float]:
    """Exact match and F1, of the reference that suits best."""
    if normalise(predicted) == NO_ANSWER:
        predicted = ""
    golds = [gold for gold in references if normalise(gold)] or [""]
    exact = max(float(normalise(gold) == normalise(predicted))
                for gold in golds)
    return exact, max(f1(gold, predicted) for gold in golds)
