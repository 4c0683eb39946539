"""Generate by the gateway's stubs, against the native API."""

import math
import unittest

from vllm_server import (
    CONTEXT,
    PROMPT,
    ServerTest,
    completes,
    native_pb2,
    request,
    strategy_metadata,
)

STRATEGIES = [
    "",
    "full",
    "every=2",
    "every=3",
    "keep=0.4",
    "prefix=2",
    "leaders=0,4",
    "sources=0,0,2,2,0,0",
    "half",
]


class GenerateTest(ServerTest):

    def native_answer(self, spec: str = "", **fields):
        """The responses of a greedy call, joined, by index."""
        message = native_pb2.GenerateRequest(
            tokens=native_pb2.TokenIds(ids=PROMPT),
            strategy=native_pb2.Strategy(spec=spec),
            sampling=native_pb2.Sampling(temperature=0),
            stopping=native_pb2.Stopping(max_tokens=8, ignore_eos=True),
        )
        message.MergeFrom(native_pb2.GenerateRequest(**fields))
        by_index = {}
        for response in self.native.Generate(message):
            joined = by_index.setdefault(
                response.index, native_pb2.GenerateResponse()
            )
            joined.MergeFrom(response)
        return by_index

    def native_tokens(self, spec: str = "", **fields) -> list[int]:
        (answer,) = self.native_answer(spec, **fields).values()
        return list(answer.token_ids)

    def test_tokens_are_those_of_the_native_api_under_every_strategy(self):
        answers = {}
        for spec in STRATEGIES:
            whole = self.complete(request(), metadata=strategy_metadata(spec))
            answers[spec] = list(whole.output_ids)
            self.assertEqual(answers[spec], self.native_tokens(spec), spec)
            self.assertEqual(whole.finish_reason, "length")
            self.assertEqual(whole.prompt_tokens, len(PROMPT))
            self.assertEqual(whole.completion_tokens, 8)
            *chunks, last = self.engine.Generate(
                request(stream=True), metadata=strategy_metadata(spec)
            )
            streamed = [t for c in chunks for t in c.chunk.token_ids]
            self.assertEqual(streamed, answers[spec])
            self.assertEqual(list(last.complete.output_ids), answers[spec])
        self.assertEqual(answers["half"], answers["every=2"])
        self.assertEqual(answers[""], answers["full"])
        self.assertGreater(len(set(map(tuple, answers.values()))), 4)

    def test_a_floor_changes_nothing_without_pressure(self):
        metadata = strategy_metadata("every=2", floor="prefix=1")
        whole = self.complete(request(), metadata=metadata)
        self.assertEqual(list(whole.output_ids), self.native_tokens("every=2"))

    def test_chunks_come_with_the_steps(self):
        *chunks, last = self.engine.Generate(
            request(stream=True, max_tokens=40)
        )
        self.assertGreater(len(chunks), 5)
        for response in chunks:
            chunk = response.chunk
            self.assertEqual(chunk.completion_tokens, len(chunk.token_ids))
            self.assertGreater(chunk.completion_tokens, 0)
            self.assertEqual(chunk.prompt_tokens, len(PROMPT))
        total = sum(response.chunk.completion_tokens for response in chunks)
        self.assertEqual(total, 40)
        self.assertEqual(last.complete.completion_tokens, 40)

    def test_several_sequences(self):
        fields = {"n": 3, "temperature": 1.5, "seed": 5, "max_tokens": 10}
        native = self.native_answer(
            num_sequences=3,
            sampling=native_pb2.Sampling(temperature=1.5, seed=5),
            stopping=native_pb2.Stopping(max_tokens=10),
        )
        expected = {i: list(answer.token_ids) for i, answer in native.items()}
        self.assertEqual(len(set(map(tuple, expected.values()))), 3)
        whole = completes(self.engine.Generate(request(**fields)))
        self.assertEqual(
            {i: list(c.output_ids) for i, c in whole.items()}, expected
        )
        streamed, ended = {i: [] for i in range(3)}, []
        for response in self.engine.Generate(request(stream=True, **fields)):
            if response.HasField("chunk"):
                self.assertNotIn(response.chunk.index, ended)
                streamed[response.chunk.index] += response.chunk.token_ids
            else:
                ended.append(response.complete.index)
        self.assertEqual(streamed, expected)
        self.assertEqual(sorted(ended), [0, 1, 2])

    def test_zero_is_unset(self):
        zeros = dict.fromkeys(
            ["top_p", "top_k", "min_p", "repetition_penalty", "n"], 0
        )
        fields = {"temperature": 1.0, "seed": 9, "max_tokens": 20}
        unset = request(**fields)
        unset.sampling_params.ClearField("temperature")
        self.assertEqual(
            self.complete(request(**fields, **zeros)).output_ids,
            self.complete(unset).output_ids,
        )

    def test_without_parameters_the_context_is_the_limit(self):
        message = request(PROMPT * 72)
        message.sampling_params.Clear()
        message.sampling_params.ignore_eos = True
        whole = self.complete(message)
        self.assertEqual(
            whole.prompt_tokens + whole.completion_tokens, CONTEXT
        )

    def test_text(self):
        tokens = self.native.Tokenize(
            native_pb2.TokenizeRequest(text="The tree <|im_end|>")
        ).token_ids
        by_text = self.complete(request("The tree <|im_end|>"))
        self.assertEqual(by_text.prompt_tokens, len(tokens))
        self.assertEqual(
            by_text.output_ids, self.complete(request(tokens)).output_ids
        )

    def test_logprobs(self):
        (native,) = self.native_answer(top_logprobs=3).values()
        whole = self.complete(request(logprobs=3)).output_logprobs
        chunks = [
            response.chunk.output_logprobs
            for response in self.engine.Generate(
                request(logprobs=3, stream=True)
            )
            if response.HasField("chunk")
        ]
        for name in ("token_ids", "token_logprobs", "top_logprobs"):
            joined = [value for chunk in chunks for value in getattr(chunk, name)]
            self.assertEqual(joined, list(getattr(whole, name)), name)
        self.assertEqual(list(whole.token_ids), list(native.token_ids))
        self.assertEqual(
            list(whole.token_logprobs),
            [entry.chosen.logprob for entry in native.logprobs],
        )
        for top, entry in zip(whole.top_logprobs, native.logprobs, strict=True):
            self.assertEqual(
                list(zip(top.token_ids, top.values, strict=True)),
                [(best.token_id, best.logprob) for best in entry.top],
            )
        chosen = self.complete(request(logprobs=0)).output_logprobs
        self.assertEqual(chosen.token_logprobs, whole.token_logprobs)
        self.assertEqual(len(chosen.top_logprobs), 0)

    def test_prompt_logprobs(self):
        for spec in ("full", "every=2"):
            score = self.native.Score(
                native_pb2.ScoreRequest(
                    tokens=native_pb2.TokenIds(ids=PROMPT),
                    strategy=native_pb2.Strategy(spec=spec),
                    top_logprobs=2,
                )
            )
            expected = [entry.chosen.logprob for entry in score.logprobs]
            best = [[t.token_id for t in e.top] for e in score.logprobs]
            responses = self.engine.Generate(
                request(prompt_logprobs=2, stream=True, n=2),
                metadata=strategy_metadata(spec),
            )
            firsts = {}
            for response in responses:
                kind = response.WhichOneof("response")
                part = getattr(response, kind)
                if part.HasField("input_logprobs"):
                    self.assertEqual(kind, "chunk")
                    self.assertNotIn(part.index, firsts)
                    firsts[part.index] = part.input_logprobs
            self.assertEqual(sorted(firsts), [0, 1])
            for logprobs in firsts.values():
                self.assertEqual(tuple(logprobs.token_ids), PROMPT)
                first, *others = logprobs.token_logprobs
                self.assertFalse(first.HasField("value"))
                self.assertEqual([other.value for other in others], expected)
                none, *top = logprobs.top_logprobs
                self.assertEqual(list(none.token_ids), [])
                self.assertEqual([list(t.token_ids) for t in top], best)
        one = self.complete(request([5], prompt_logprobs=0)).input_logprobs
        self.assertEqual(list(one.token_ids), [5])
        self.assertEqual(len(one.top_logprobs), 0)

    def test_what_stopped_it(self):
        tokens = self.native_tokens()
        stop = tokens[4]
        end = tokens.index(stop) + 1
        whole = self.complete(request(stop_token_ids=[3, stop]))
        self.assertEqual(list(whole.output_ids), tokens[:end])
        self.assertEqual(whole.finish_reason, "stop")
        self.assertEqual(whole.matched_token_id, stop)
        (native,) = self.native_answer().values()
        word = native.text[len(native.text) // 2 :][:3]
        whole = self.complete(request(stop=[word]))
        self.assertEqual(whole.finish_reason, "stop")
        self.assertEqual(whole.matched_stop_str, word)
        length = len(whole.output_ids)
        self.assertEqual(list(whole.output_ids), tokens[:length])

    def test_ten_thousand_stop_tokens(self):
        stop = [token for token in range(1, 1000)] * 11
        whole = self.complete(request(stop_token_ids=stop))
        self.assertLessEqual(whole.completion_tokens, 8)

    def test_bias_and_minimum(self):
        whole = self.complete(request(logit_bias={77: 1000.0}))
        self.assertEqual(list(whole.output_ids), [77] * 8)
        whole = self.complete(request(stop_token_ids=[77], min_tokens=8))
        self.assertEqual(whole.completion_tokens, 8)

    def test_cached_tokens(self):
        prompt = [30 + i for i in range(64)]
        self.complete(request(prompt))
        again = self.complete(request(prompt))
        self.assertGreaterEqual(again.cached_tokens, 32)
        self.assertLess(again.cached_tokens, 64)

    def test_tokens_are_those_that_the_server_counts(self):
        names = ("strata_generation_tokens_total", "strata_prompt_tokens_total")
        before = [self.metric(name) for name in names]
        calls = [
            self.engine.Generate(request(stream=i % 2 == 0, n=2))
            for i in range(20)
        ]
        generated = prompt = 0
        for call in calls:
            counted = [r.complete for r in call if r.HasField("complete")]
            generated += sum(c.completion_tokens for c in counted)
            prompt += counted[0].prompt_tokens
        after = [self.metric(name) for name in names]
        self.assertEqual(generated, 20 * 2 * 8)
        self.assertTrue(math.isfinite(after[0]))
        self.assertEqual(after[0] - before[0], generated)
        self.assertEqual(after[1] - before[1], prompt)


if __name__ == "__main__":
    unittest.main()
