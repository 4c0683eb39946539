"""Training text that the model itself writes, asked from a running server.

Half of the documents continue a random word of the vocabulary, as LLM-QAT
(arXiv 2305.17888) makes its text; half are conversations whose question the
model writes too, from an empty user turn, as Magpie (arXiv 2406.08464) does.
Document i depends on (seed, i) only: the same seed makes the same file,
however many requests are in flight.
"""

import json
import random
import re
from concurrent import futures

START_WORD = re.compile(r" ?[A-Z][a-z]{2,}")
MAX_START_TRIES = 200


class SelfText:
  """Asks `api` (evaluation/api.py) for documents.  Any thread."""

  def __init__(self, api, seed, chat_fraction, max_tokens):
    self._api = api
    self._seed = seed
    self._chat_fraction = chat_fraction
    self._max_tokens = max_tokens
    self._vocab_size = api.model.vocab_size
    self._user_header = self._find_user_header() if chat_fraction > 0 else []

  def document(self, index):
    """Document `index` as a dict with text, kind and num_tokens."""
    rng = random.Random(f"{self._seed}/{index}")
    if rng.random() < self._chat_fraction:
      return self._chat(rng)
    return self._plain(rng)

  def _find_user_header(self):
    """The tokens of a prompt up to where the user's words begin."""
    one, other = (self._api.tokenize_chat([("user", text)]) for text in "AB")
    size = 0
    while one[size] == other[size]:
      size += 1
    return one[:size]

  def _generate(self, rng, **prompt):
    return self._api.generate(
        seed=rng.getrandbits(63), temperature=1.0,
        max_tokens=self._max_tokens, **prompt)

  def _plain(self, rng):
    for _ in range(MAX_START_TRIES):
      token = rng.randrange(self._vocab_size)
      if START_WORD.fullmatch(self._api.detokenize([token])):
        break
    tokens = [token] + self._generate(rng, tokens=[token]).token_ids
    return self._as_document("plain", tokens)

  def _chat(self, rng):
    question = self._generate(rng, tokens=self._user_header).text.strip()
    messages = [("user", question or "Hello!")]
    prompt = self._api.tokenize_chat(messages)
    answer = self._generate(rng, chat=messages)
    return self._as_document("chat", prompt + answer.token_ids)

  def _as_document(self, kind, tokens):
    return {"text": self._api.detokenize(tokens), "kind": kind,
            "num_tokens": len(tokens)}


def write_documents(source, out, num_tokens, concurrency, progress):
  """Writes documents 0, 1, ... as JSON lines until they hold `num_tokens`."""
  written = 0
  index = 0
  with futures.ThreadPoolExecutor(concurrency) as pool:
    pending = []
    while written < num_tokens:
      while len(pending) < 2 * concurrency:
        pending.append(pool.submit(source.document, index))
        index += 1
      document = pending.pop(0).result()
      out.write(json.dumps(document) + "\n")
      written += document["num_tokens"]
      progress(written)
    for future in pending:
      future.cancel()
  return written
