"""Log-probabilities by llama.cpp: llama_cpp_score.py MODEL.gguf, windows of
token ids as JSON on standard input.  Prints those of all tokens but the first
of each window."""

import json
import sys

import numpy
from llama_cpp import Llama


def main():
    windows = json.load(sys.stdin)
    model = Llama(sys.argv[1], n_ctx=max(map(len, windows)) + 1,
                  logits_all=True, verbose=False)
    found = []
    for window in windows:
        model.reset()
        model.eval(window)
        logits = numpy.array(model.scores[:len(window)], dtype=numpy.float64)
        logits -= logits.max(axis=1, keepdims=True)
        logits -= numpy.log(numpy.exp(logits).sum(axis=1, keepdims=True))
        found += [logits[i, token] for i, token in enumerate(window[1:])]
    json.dump(found, sys.stdout)


if __name__ == "__main__":
    main()
