"""Calls of tritonclient, unmodified: all that answers at once."""

import asyncio
import json
import unittest

import grpc
import numpy as np
import tritonclient.grpc as triton
import tritonclient.grpc.aio as triton_aio
from tritonclient.grpc import service_pb2
from tritonclient.utils import InferenceServerException

from kserve_server import MODEL, flag, inputs, served, text, text_of


class ClientTest(unittest.TestCase):

    @classmethod
    def setUpClass(cls):
        cls.server = cls.enterClassContext(served())
        cls.client = triton.InferenceServerClient(cls.server.address)
        cls.addClassCleanup(cls.client.close)

    def infer(self, *args, parameters=None, outputs=None, **sampling):
        return self.client.infer(
            MODEL,
            inputs(*args, **sampling),
            parameters=parameters,
            outputs=outputs,
        )

    def assert_refused(self, code: str, pattern: str, call, *args, **kwargs):
        with self.assertRaisesRegex(InferenceServerException, pattern) as got:
            call(*args, **kwargs)
        self.assertEqual(got.exception.status(), f"StatusCode.{code}")

    def test_health_and_metadata(self):
        self.assertTrue(self.client.is_server_live())
        self.assertTrue(self.client.is_server_ready())
        self.assertTrue(self.client.is_model_ready(MODEL))
        self.assertTrue(self.client.is_model_ready(MODEL, "1"))
        self.assertFalse(self.client.is_model_ready(MODEL, "2"))
        self.assertFalse(self.client.is_model_ready("other"))
        server = self.client.get_server_metadata()
        self.assertEqual(server.name, "strata")
        self.assertIn("statistics", server.extensions)
        model = self.client.get_model_metadata(MODEL)
        self.assertEqual((model.name, list(model.versions)), (MODEL, ["1"]))
        shapes = {t.name: (t.datatype, list(t.shape)) for t in model.inputs}
        self.assertEqual(shapes["text_input"], ("BYTES", [1]))
        self.assertEqual(shapes["stream"], ("BOOL", [1]))
        self.assertEqual(
            [t.name for t in model.outputs],
            [
                "text_output",
                "finish_reason",
                "cumulative_logprob",
                "logprobs",
                "num_input_tokens",
                "num_output_tokens",
            ],
        )
        (entry,) = self.client.get_model_repository_index().models
        self.assertEqual((entry.name, entry.state), (MODEL, "READY"))

    def test_config(self):
        config = self.client.get_model_config(MODEL, as_json=True)["config"]
        self.assertTrue(config["model_transaction_policy"]["decoupled"])
        self.assertNotIn("max_batch_size", config)  # 0: none
        required = [t["name"] for t in config["input"] if "optional" not in t]
        self.assertEqual(required, ["text_input"])

    def test_what_is_not_there(self):
        for call in (
            self.client.get_model_metadata,
            self.client.get_model_config,
            self.client.get_inference_statistics,
        ):
            self.assert_refused("NOT_FOUND", "not served", call, "other")
            self.assert_refused("NOT_FOUND", "not served", call, MODEL, "2")
        for call in (
            self.client.get_system_shared_memory_status,
            self.client.get_cuda_shared_memory_status,
            self.client.get_trace_settings,
            self.client.get_log_settings,
            lambda: self.client.load_model(MODEL),
            lambda: self.client.unload_model(MODEL),
        ):
            self.assert_refused("UNIMPLEMENTED", "Strata serves one model", call)

    def test_infer(self):
        result = self.infer("The tree", flag("exclude_input_in_output"))
        answer = text_of(result)
        self.assertEqual(result.get_response().model_name, MODEL)
        self.assertEqual(result.get_response().model_version, "1")
        # By default the input stands before it.
        self.assertEqual(text_of(self.infer("The tree")), "The tree" + answer)
        # A batch dimension before it is allowed.
        batch = inputs("The tree", flag("exclude_input_in_output"))
        batch[0].set_shape([1, 1])
        self.assertEqual(text_of(self.client.infer(MODEL, batch)), answer)

    def test_sampling_parameters_as_parameters_of_the_request(self):
        only_text = [
            text("text_input", "The tree"),
            flag("return_num_output_tokens"),
        ]
        given = {"temperature": 0.0, "max_tokens": 5, "ignore_eos": True}
        result = self.client.infer(MODEL, only_text, parameters=given)
        self.assertEqual(result.as_numpy("num_output_tokens").tolist(), [5])
        result = self.client.infer(MODEL, only_text)
        self.assertLessEqual(result.as_numpy("num_output_tokens")[0], 16)

    def test_extra_outputs(self):
        result = self.infer(
            "The tree",
            flag("return_finish_reason"),
            flag("return_cumulative_logprob"),
            flag("return_logprobs"),
            flag("return_num_input_tokens"),
            flag("return_num_output_tokens"),
            logprobs=2,
        )
        self.assertEqual(result.as_numpy("finish_reason").tolist(), [b"length"])
        self.assertEqual(result.as_numpy("num_output_tokens").tolist(), [8])
        self.assertGreater(result.as_numpy("num_input_tokens")[0], 0)
        (entry,) = result.as_numpy("logprobs")
        logprobs = json.loads(entry)
        self.assertEqual(len(logprobs), 8)
        total = 0
        for of_token in logprobs:
            self.assertEqual(len(of_token), 2)  # greedy: the first of the best
            best = [t for t in of_token.values() if t["rank"] == 1]
            total += best[0]["logprob"]
        sums = result.as_numpy("cumulative_logprob")
        self.assertEqual(sums.dtype, np.float32)
        self.assertAlmostEqual(float(sums[0]), total, places=3)

    def test_several_sequences(self):
        result = self.infer(
            "The tree",
            flag("return_finish_reason"),
            flag("exclude_input_in_output"),
            n=3,
            temperature=1.5,
            seed=3,
        )
        texts = result.as_numpy("text_output").tolist()
        self.assertEqual(len(set(texts)), 3)
        self.assertEqual(len(result.as_numpy("finish_reason")), 3)

    def test_outputs_are_in_the_order_of_the_raw_contents(self):
        wanted = [
            triton.InferRequestedOutput("num_output_tokens"),
            triton.InferRequestedOutput("text_output"),
        ]
        result = self.infer(
            "The tree",
            flag("return_num_output_tokens"),
            flag("return_finish_reason"),
            outputs=wanted,
        )
        response = result.get_response()
        self.assertEqual(
            {output.name for output in response.outputs},
            {"text_output", "num_output_tokens"},
        )
        self.assertEqual(len(response.raw_output_contents), 2)
        self.assertEqual(result.as_numpy("num_output_tokens").tolist(), [8])
        self.assertTrue(text_of(result).startswith("The tree"))

    def test_strategies(self):
        by_parameter = {
            spec: text_of(self.infer("A", parameters={"kv_strategy": spec}))
            for spec in ("full", "every=2", "prefix=1")
        }
        self.assertEqual(len(set(by_parameter.values())), 3)
        for spec, answer in by_parameter.items():
            result = self.infer("A", text("kv_strategy", spec))
            self.assertEqual(text_of(result), answer)
        self.assert_refused(
            "INVALID_ARGUMENT",
            "strategy.spec: .*evry",
            self.infer,
            "A",
            parameters={"kv_strategy": "evry=2"},
        )
        self.infer(
            "A", parameters={"kv_strategy": "every=2", "kv_floor": "prefix=1"}
        )

    def test_refusals_are_those_of_every_face(self):
        for code, pattern, sampling in (
            ("INVALID_ARGUMENT", "temperature is -1", {"temperature": -1}),
            ("INVALID_ARGUMENT", "top_p is 2", {"top_p": 2}),
            ("INVALID_ARGUMENT", "max_tokens is 0", {"max_tokens": 0}),
            ("INVALID_ARGUMENT", "top_logprobs is 21", {"logprobs": 21}),
            ("INVALID_ARGUMENT", '"beam" is unknown', {"beam": 1}),
        ):
            self.assert_refused(code, pattern, self.infer, "A", **sampling)
        self.assert_refused(
            "INVALID_ARGUMENT", "text is empty", self.infer, ""
        )
        self.assert_refused(
            "NOT_FOUND", "other", self.client.infer, "other", inputs("A")
        )
        self.assert_refused(
            "NOT_FOUND",
            "version",
            self.client.infer,
            MODEL,
            inputs("A"),
            model_version="7",
        )
        self.assert_refused(
            "UNIMPLEMENTED",
            "decoupled",
            self.infer,
            "A",
            flag("stream"),
        )
        shared = triton.InferInput("text_input", [1], "BYTES")
        shared.set_shared_memory("region", 8)
        self.assert_refused(
            "UNIMPLEMENTED", "memory", self.client.infer, MODEL, [shared]
        )

    def test_timeout_of_the_request(self):
        self.assert_refused(
            "DEADLINE_EXCEEDED",
            "",
            self.client.infer,
            MODEL,
            inputs("A", n=64, max_tokens=400),
            timeout=20_000,
        )
        self.assert_refused(
            "DEADLINE_EXCEEDED",
            "",
            self.client.infer,
            MODEL,
            inputs("A", n=64, max_tokens=400),
            client_timeout=0.02,
        )

    def test_async_infer_and_cancel(self):
        done = []
        call = self.client.async_infer(
            MODEL,
            inputs("A", max_tokens=450, n=32),
            callback=lambda result, error: done.append(error),
        )
        call.cancel()
        while not done:
            pass
        self.assertIn("cancel", str(done[0]).lower())

    def test_aio(self):
        async def run():
            async with triton_aio.InferenceServerClient(
                self.server.address
            ) as client:
                self.assertTrue(await client.is_model_ready(MODEL))
                results = await asyncio.gather(
                    *(client.infer(MODEL, inputs("A")) for _ in range(5))
                )
                return {text_of(result) for result in results}

        self.assertEqual(asyncio.run(run()), {text_of(self.infer("A"))})

    def test_typed_contents(self):
        request = service_pb2.ModelInferRequest(model_name=MODEL, id="typed")
        for name, field, value in (
            ("text_input", "bytes_contents", b"A"),
            ("sampling_parameters", "bytes_contents", b'{"temperature": 0}'),
            ("exclude_input_in_output", "bool_contents", True),
        ):
            tensor = request.inputs.add(name=name, shape=[1])
            tensor.datatype = "BOOL" if field == "bool_contents" else "BYTES"
            getattr(tensor.contents, field).append(value)
        with grpc.insecure_channel(self.server.address) as channel:
            infer = channel.unary_unary(
                "/inference.GRPCInferenceService/ModelInfer",
                service_pb2.ModelInferRequest.SerializeToString,
                service_pb2.ModelInferResponse.FromString,
            )
            response = infer(request)
        self.assertEqual(response.id, "typed")
        self.assertEqual(len(response.raw_output_contents), 1)

    def test_a_broken_message(self):
        with grpc.insecure_channel(self.server.address) as channel:
            infer = channel.unary_unary(
                "/inference.GRPCInferenceService/ModelInfer"
            )
            with self.assertRaises(grpc.RpcError) as caught:
                infer(b"\x0a\xff")
        self.assertEqual(
            caught.exception.code(), grpc.StatusCode.INVALID_ARGUMENT
        )

    def test_statistics(self):
        def get():
            statistics = self.client.get_inference_statistics(MODEL)
            return statistics.model_stats[0]

        before = get()
        self.infer("A")
        with self.assertRaises(InferenceServerException):
            self.infer("")
        after = get()
        self.assertEqual(after.name, MODEL)
        self.assertEqual(after.inference_count, before.inference_count + 1)
        for name in ("success", "fail", "queue", "compute_infer"):
            old = getattr(before.inference_stats, name)
            new = getattr(after.inference_stats, name)
            # A cancelled call of another test may end now.
            self.assertGreaterEqual(new.count, old.count + 1, name)
            self.assertGreater(new.ns, old.ns, name)


if __name__ == "__main__":
    unittest.main()
