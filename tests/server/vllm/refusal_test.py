"""What Generate and the other calls refuse, and how they say so."""

import unittest

import grpc
from smg_grpc_proto import vllm_engine_pb2
from smg_grpc_proto.generated import common_pb2

from vllm_server import (
    CONTEXT,
    PROMPT,
    SERVICE,
    VOCAB,
    ServerTest,
    request,
    strategy_metadata,
)

NAN, INFINITY = float("nan"), float("inf")


class RefusalTest(ServerTest):

    def assert_generate_refused(self, code: str, pattern: str, message, **call):
        for stream in (False, True):
            message.stream = stream
            self.assert_refused(
                code, pattern, self.engine.Generate, message, **call
            )

    def tearDown(self):
        # The server lives, and holds nothing of what it refused.
        self.complete(request())
        self.wait_until_idle()
        (load,) = self.engine.GetLoads(
            vllm_engine_pb2.GetLoadsRequest()
        ).loads
        self.assertEqual((load.num_total_reqs, load.num_used_tokens), (0, 0))

    def test_parameters_out_of_range(self):
        for pattern, sampling in (
            ("temperature is nan", {"temperature": NAN}),
            ("temperature is -1", {"temperature": -1}),
            ("temperature is inf", {"temperature": INFINITY}),
            ("top_p is nan", {"top_p": NAN}),
            ("top_p is 1.5", {"top_p": 1.5}),
            ("min_p is -0.5", {"min_p": -0.5}),
            ("repetition_penalty is -1", {"repetition_penalty": -1}),
            ("repetition_penalty is nan", {"repetition_penalty": NAN}),
            ("presence_penalty is 3", {"presence_penalty": 3}),
            ("frequency_penalty is -inf", {"frequency_penalty": -INFINITY}),
            ("max_tokens is 0", {"max_tokens": 0}),
            ("min_tokens is 9", {"min_tokens": 9}),
            ("num_sequences is 129", {"n": 129}),
            ("num_sequences is 4294967295", {"n": 2**32 - 1}),
            ("logprobs is 21", {"logprobs": 21}),
            ("logprobs is -1", {"logprobs": -1}),
            ("prompt_logprobs is -1", {"prompt_logprobs": -1}),
            ("stop_token_ids: token id 1013", {"stop_token_ids": [VOCAB]}),
            ("stop_token_ids", {"stop_token_ids": [1] * 9999 + [2**32 - 1]}),
            ("stop has 10000 strings", {"stop": ["a"] * 10_000}),
            ("stop has an empty string", {"stop": [""]}),
            ("stop string", {"stop": ["a" * 257]}),
            ("logit_bias: token id -1", {"logit_bias": {-1: 1.0}}),
            ("logit_bias: token id 1013", {"logit_bias": {VOCAB: 1.0}}),
            ("logit_bias of token 5 is nan", {"logit_bias": {5: NAN}}),
        ):
            with self.subTest(pattern):
                self.assert_generate_refused(
                    "INVALID_ARGUMENT", pattern, request(**sampling)
                )

    def test_prompts(self):
        nothing = request()
        nothing.ClearField("input")
        for pattern, message in (
            ("one of tokenized and text must be set", nothing),
            ("the prompt is empty", request([])),
            ("text is empty", request("")),
            ("token id 1013 at 1 is not below", request([4, VOCAB])),
            ("token id 4294967295 at 0", request([2**32 - 1])),
            ("512", request([4] * CONTEXT)),
            ("cannot fit|tokens", request("tree " * 20_000)),
        ):
            with self.subTest(pattern):
                self.assert_generate_refused(
                    "INVALID_ARGUMENT", pattern, message
                )

    def test_what_is_not_served_is_named(self):
        pb = vllm_engine_pb2
        for field, value in (
            ("json_schema", "{}"),
            ("regex", "a+"),
            ("grammar", "root ::= a"),
            ("structural_tag", "{}"),
            ("json_object", True),
            ("choice", pb.ChoiceConstraint(choices=["a"])),
            ("grammar_from_first_token", True),
            ("truncate_prompt_tokens", -1),
        ):
            self.assert_generate_refused(
                "UNIMPLEMENTED",
                f"{field} is not served",
                request(**{field: value}),
            )
        image = pb.MultimodalInputs(mm_hashes=["a"])
        for field, value in (
            ("kv_transfer_params", pb.KvTransferParams(remote_port=1)),
            ("kv_transfer_params_json", "{}"),
            ("mm_inputs", image),
            ("extra_mm_inputs", [image]),
            ("media_refs", pb.MediaRefs(items=[pb.MediaRef(url="data:,a")])),
        ):
            message = request()
            message.MergeFrom(pb.GenerateRequest(**{field: value}))
            self.assert_generate_refused(
                "UNIMPLEMENTED", f"{field} is not served", message
            )
        message = request()
        message.data_parallel_rank = 1
        self.assert_generate_refused(
            "INVALID_ARGUMENT", "data_parallel_rank is 1", message
        )

    def test_strategies(self):
        for spec, floor, pattern in (
            ("evry=2", "", 'metadata x-kv-strategy: .*"evry=2"'),
            ("every=0", "", "metadata x-kv-strategy: "),
            ("leaders=1", "", "metadata x-kv-strategy: "),
            ("x" * 4000, "", "metadata x-kv-strategy: "),
            ("every=2", "full", "metadata x-kv-floor: "),
            ("full", "quarter", "metadata x-kv-floor: "),
        ):
            self.assert_generate_refused(
                "INVALID_ARGUMENT",
                pattern,
                request(),
                metadata=strategy_metadata(spec, floor),
            )
        self.assert_generate_refused(
            "INVALID_ARGUMENT",
            "metadata x-kv-strategy is there more than once",
            request(),
            metadata=strategy_metadata("full") * 2,
        )

    def test_labels(self):
        self.assert_generate_refused(
            "INVALID_ARGUMENT", "257 bytes", request(request_id="a" * 257)
        )
        self.assert_generate_refused(
            "INVALID_ARGUMENT",
            "257 bytes",
            request(),
            metadata=[("x-request-id", "a" * 257)],
        )

    def test_broken_messages(self):
        for method in ("Generate", "Abort", "GetLoads", "GetTokenizer"):
            call = self.channel.unary_stream(f"/{SERVICE}/{method}")
            self.assert_refused(
                "INVALID_ARGUMENT", "cannot be parsed", call, b"\x0a\xff"
            )

    def test_refusals_are_counted(self):
        before = self.metric("strata_request_rejected_total", "invalid")
        self.assert_generate_refused(
            "INVALID_ARGUMENT", "", request(temperature=-1)
        )
        self.assert_generate_refused(
            "UNIMPLEMENTED", "", request(regex="a")
        )
        after = self.metric("strata_request_rejected_total", "invalid")
        self.assertEqual(after - before, 4)

    def test_other_calls(self):
        pb = vllm_engine_pb2
        for call, message, words in (
            (self.engine.Embed, pb.EmbedRequest(), "no embeddings"),
            (self.engine.FlushCache, common_pb2.FlushCacheRequest(), "cache"),
            (
                self.engine.StartProfile,
                common_pb2.StartProfileRequest(),
                "no profiler",
            ),
            (
                self.engine.StopProfile,
                common_pb2.StopProfileRequest(),
                "no profiler",
            ),
            (
                self.engine.SubscribeKvEvents,
                common_pb2.SubscribeKvEventsRequest(),
                "no KV events",
            ),
        ):
            self.assert_refused("UNIMPLEMENTED", words, call, message)
        for message, words in (
            (pb.AbortRequest(request_ids=["a", ""]), "has an empty one"),
            (pb.AbortRequest(request_ids=["a"] * 5000), "has 5000"),
        ):
            self.assert_refused(
                "INVALID_ARGUMENT", words, self.engine.Abort, message
            )
        for message, words in (
            (pb.GetLoadsRequest(dp_rank=1), "dp_rank is 1"),
            (pb.GetLoadsRequest(include=["core", "lora"]), '"lora"'),
        ):
            self.assert_refused(
                "INVALID_ARGUMENT", words, self.engine.GetLoads, message
            )


class PoolTest(ServerTest):
    """Of a pool that holds a long request under few leaders alone."""

    FLAGS = ("--kv_memory=256KiB",)

    def test_what_can_never_fit_is_refused_under_its_strategy(self):
        message = request(list(PROMPT) * 50, max_tokens=100)
        self.assert_refused(
            "INVALID_ARGUMENT", "pages", self.engine.Generate, message
        )
        whole = self.complete(message, metadata=strategy_metadata("prefix=1"))
        self.assertEqual(whole.completion_tokens, 100)


if __name__ == "__main__":
    unittest.main()
