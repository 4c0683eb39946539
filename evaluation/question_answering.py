"""How well a model answers questions from their contexts."""

import dataclasses
import math
import statistics

from evaluation import answers
from evaluation.connection import Connection, Strategy
from evaluation.failure import BadInput
from evaluation.progress import Progress
from evaluation.questions import Question

PROMPTS = {
    "plain": "Context: {context}\n\nQuestion: {question}\n\nAnswer:",
    "chat": ("{context}\n\nQuestion: {question}\n\nAnswer with a few words of "
             "the text above and nothing else; if it holds no answer, say "
             f"{answers.NO_ANSWER}."),
}


@dataclasses.dataclass(frozen=True)
class Prompt:
    ids: list[int]
    answer_ids: list[int]  # of the first reference; empty if there is none
    references: tuple[str, ...]


@dataclasses.dataclass(frozen=True)
class AnswerQuality:
    num_questions: int
    exact_match: float
    f1: float
    f1_answerable: float | None  # of the questions that have an answer
    f1_unanswerable: float | None
    loss: float | None  # of the first reference's tokens, nats each
    num_answer_tokens: int  # that `loss` is the mean of
    # Of one stream, while others run.
    decode_tokens_per_second: float | None


def prepare(connection: Connection, questions: list[Question], style: str,
            max_answer_tokens: int) -> list[Prompt]:
    """Tokens of all that fit the model's context."""

    def to_prompt(question):
        text = PROMPTS[style].format(context=question.context,
                                     question=question.question)
        answer = next((a for a in question.answers if answers.normalise(a)), "")
        if style == "chat":
            ids = connection.tokenize_chat(text)
        else:
            ids = connection.tokenize(text, bos=True)
            answer = answer and " " + answer
        return Prompt(ids=ids, references=question.answers,
                      answer_ids=connection.tokenize(answer) if answer else [])

    room = connection.model.max_model_len
    prompts = [
        prompt for prompt in connection.run_all(to_prompt, questions)
        if len(prompt.ids) + max(max_answer_tokens, len(prompt.answer_ids))
        <= room]
    if not prompts:
        raise BadInput(f"no question fits the context of {room} tokens")
    return prompts


@dataclasses.dataclass(frozen=True)
class _Outcome:
    exact: float
    f1: float
    answer_loss: float  # summed over the answer's tokens
    num_decoded: int  # tokens after the first
    decode_seconds: float


def measure(connection: Connection, strategy: Strategy, prompts: list[Prompt],
            max_answer_tokens: int, progress: Progress) -> AnswerQuality:
    """Greedy answers, up to the end of a line."""

    def answer(prompt):
        text, usage = connection.generate(prompt.ids, strategy.spec,
                                          max_answer_tokens, ["\n"])
        exact, f1 = answers.judge(prompt.references, text)
        loss = _answer_loss(connection, strategy, prompt)
        progress.add()
        return _Outcome(exact, f1, loss, max(0, usage.generated_tokens - 1),
                        usage.decode_seconds)

    outcomes = connection.run_all(answer, prompts)
    has_answer = [bool(prompt.answer_ids) for prompt in prompts]

    def mean_f1(wanted):
        chosen = [outcome.f1 for outcome, has in zip(outcomes, has_answer)
                  if has == wanted]
        return statistics.fmean(chosen) if chosen else None

    num_answer_tokens = sum(len(prompt.answer_ids) for prompt in prompts)
    loss = math.fsum(outcome.answer_loss for outcome in outcomes)
    seconds = math.fsum(outcome.decode_seconds for outcome in outcomes)
    num_decoded = sum(outcome.num_decoded for outcome in outcomes)
    return AnswerQuality(
        num_questions=len(prompts),
        exact_match=statistics.fmean(outcome.exact for outcome in outcomes),
        f1=statistics.fmean(outcome.f1 for outcome in outcomes),
        f1_answerable=mean_f1(True), f1_unanswerable=mean_f1(False),
        loss=loss / num_answer_tokens if num_answer_tokens else None,
        num_answer_tokens=num_answer_tokens,
        decode_tokens_per_second=num_decoded / seconds if seconds else None)


def _answer_loss(connection, strategy, prompt) -> float:
    if not prompt.answer_ids:
        return 0.0
    response = connection.score(prompt.ids + prompt.answer_ids, strategy.spec)
    return -math.fsum(entry.chosen.logprob for entry in
                      response.logprobs[-len(prompt.answer_ids):])
