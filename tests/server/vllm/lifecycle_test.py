"""Cancel, abort, deadlines, keys, the queue, draining, and what the engine says
of itself: by the gateway's stubs.
"""

import hashlib
import io
import itertools
import pathlib
import tempfile
import threading
import time
import unittest
import zipfile

import grpc
from smg_grpc_proto import vllm_engine_pb2, vllm_engine_pb2_grpc
from smg_grpc_proto.generated import common_pb2

from vllm_server import (
    CONTEXT,
    MERGES,
    MODEL,
    PROMPT,
    SERVICE,
    VOCAB,
    ServerTest,
    native_pb2,
    request,
    served,
    tiny_models,
)

HEALTH_CHECK = "/grpc.health.v1.Health/Check"
SERVING, NOT_SERVING = b"\x08\x01", b"\x08\x02"
REFLECTION = "/grpc.reflection.v1alpha.ServerReflection/ServerReflectionInfo"


def long_request(**sampling) -> vllm_engine_pb2.GenerateRequest:
    """Takes some seconds."""
    return request(stream=True, **{"n": 64, "max_tokens": 450, **sampling})


def health_of(channel, service: str) -> bytes:
    name = service.encode()
    check = channel.unary_unary(HEALTH_CHECK)
    return check(b"\x0a" + bytes([len(name)]) + name)


class LifecycleTest(ServerTest):

    def finished(self, reason: str) -> float:
        label = f'finished_reason="{reason}"'
        return self.metric("strata_request_finished_total", label)

    def test_closing_the_stream_ends_the_request(self):
        before = self.finished("cancelled")
        for message in (long_request(), long_request(prompt_logprobs=0)):
            call = self.engine.Generate(message)
            next(call)
            call.cancel()
            self.wait_until_idle()
        self.assertEqual(self.finished("cancelled") - before, 2)

    def test_closing_it_before_the_first_token_too(self):
        for prompt_logprobs in (None, 1):
            message = long_request(prompt_logprobs=prompt_logprobs)
            for _ in range(20):
                self.engine.Generate(message).cancel()
        self.wait_until_idle()

    def test_a_client_that_goes_away(self):
        before = self.finished("cancelled")
        with grpc.insecure_channel(self.server.address) as channel:
            stub = vllm_engine_pb2_grpc.VllmEngineStub(channel)
            call = stub.Generate(long_request())
            next(call)
        self.wait_until_idle()
        self.assertEqual(self.finished("cancelled") - before, 1)

    def test_abort(self):
        message = long_request()
        for request_id in ("a", "b", "c"):
            message.request_id = request_id
            call = self.engine.Generate(message)
            seen = next(call).chunk.completion_tokens
            self.engine.Abort(
                vllm_engine_pb2.AbortRequest(request_ids=["x", request_id])
            )
            reasons = []
            for response in call:  # ends well
                if response.HasField("complete"):
                    reasons.append(response.complete.finish_reason)
            self.assertEqual(reasons, ["abort"] * 64)
            self.assertGreater(seen, 0)
        # There is none any more, which is no error.
        self.engine.Abort(vllm_engine_pb2.AbortRequest(request_ids=["a"] * 3))
        self.engine.Abort(vllm_engine_pb2.AbortRequest())
        self.wait_until_idle()

    def test_the_label_may_stand_in_metadata(self):
        call = self.engine.Generate(
            long_request(), metadata=[("x-request-id", "from-the-proxy")]
        )
        next(call)
        answer = self.native.Abort(
            native_pb2.AbortRequest(request_id="from-the-proxy")
        )
        self.assertEqual(answer.aborted, 1)
        list(call)
        # Its line is written after the last response.
        while "label=from-the-proxy" not in self.server.log():
            time.sleep(0.01)

    def test_deadlines(self):
        before = self.finished("deadline")
        for prompt_logprobs in (None, 0):
            self.assert_refused(
                "DEADLINE_EXCEEDED",
                "",
                self.engine.Generate,
                long_request(prompt_logprobs=prompt_logprobs),
                timeout=0.1,
            )
        self.wait_until_idle()
        self.assertGreaterEqual(self.finished("deadline") - before, 1)

    def test_many_at_once(self):
        expected = list(self.complete(request()).output_ids)
        failures = []

        def ask(i: int):
            for _ in range(5):
                call = self.engine.Generate(
                    request(stream=i % 2 == 0, prompt_logprobs=i % 3)
                )
                if i % 5 == 4:
                    call.cancel()
                    continue
                *_, last = call
                if list(last.complete.output_ids) != expected:
                    failures.append(last)

        threads = [threading.Thread(target=ask, args=(i,)) for i in range(20)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual(failures, [])
        self.wait_until_idle()

    def test_health(self):
        answer = self.engine.HealthCheck(vllm_engine_pb2.HealthCheckRequest())
        self.assertEqual((answer.healthy, answer.message), (True, "ready"))
        self.assertEqual(health_of(self.channel, SERVICE), SERVING)

    def test_reflection(self):
        ask = self.channel.stream_stream(REFLECTION)
        (names,) = ask(iter([b"\x3a\x00"]))  # list_services
        self.assertIn(SERVICE.encode(), names)
        (file,) = ask(iter([b"\x22" + bytes([len(SERVICE)]) + SERVICE.encode()]))
        self.assertIn(b"GenerateStreamChunk", file)

    def test_what_the_engine_says_of_itself(self):
        pb = vllm_engine_pb2
        model = self.engine.GetModelInfo(pb.GetModelInfoRequest())
        self.assertTrue(model.is_generation)
        self.assertEqual(model.served_model_name, MODEL)
        self.assertEqual(model.max_context_length, CONTEXT)
        self.assertEqual(model.max_req_input_len, CONTEXT - 1)
        self.assertEqual(model.vocab_size, VOCAB)
        self.assertEqual(model.model_type, "llama")
        self.assertEqual(list(model.architectures), ["LlamaForCausalLM"])
        self.assertEqual(list(model.eos_token_ids), [1002])
        self.assertFalse(model.supports_vision)
        self.assertEqual(model.tokenizer_path, model.model_path)
        self.complete(request())
        server = self.engine.GetServerInfo(pb.GetServerInfoRequest())
        self.assertEqual(server.max_num_seqs, 64)
        self.assertEqual(server.block_size, 16)
        self.assertEqual(server.data_parallel_size, 1)
        self.assertEqual(server.kv_connector, "")
        self.assertLess(abs(time.time() - server.last_receive_timestamp), 60)
        self.assertGreater(server.uptime_seconds, 0)

    def test_loads(self):
        call = self.engine.Generate(long_request())
        next(call)
        # The report of a step follows its tokens.
        while not self.native.GetLoad(native_pb2.GetLoadRequest()).running:
            time.sleep(0.01)
        for ask in (
            vllm_engine_pb2.GetLoadsRequest(),
            vllm_engine_pb2.GetLoadsRequest(dp_rank=0, include=["core"]),
        ):
            loads = self.engine.GetLoads(ask)
            self.assertEqual(loads.dp_rank_count, 1)
            (load,) = loads.loads
            self.assertEqual(load.num_running_reqs, 1)
            self.assertEqual(load.num_total_reqs, 1)
            self.assertEqual(load.max_running_requests, 64)
            self.assertGreater(load.token_usage, 0)
            self.assertLess(load.token_usage, 1)
            self.assertGreater(load.num_used_tokens, 0)
            self.assertLess(load.num_used_tokens, load.max_total_num_tokens)
        call.cancel()
        self.wait_until_idle()

    def test_tokenizer(self):
        call = self.engine.GetTokenizer(common_pb2.GetTokenizerRequest())
        *chunks, last = call
        self.assertGreaterEqual(len(chunks), 3)
        self.assertEqual({chunk.sha256 for chunk in chunks}, {""})
        data = b"".join(chunk.data for chunk in [*chunks, last])
        self.assertEqual(hashlib.sha256(data).hexdigest(), last.sha256)
        with zipfile.ZipFile(io.BytesIO(data)) as bundle:
            self.assertIsNone(bundle.testzip())
            self.assertEqual(
                bundle.namelist(),
                [
                    "config.json",
                    "merges.txt",
                    "tokenizer.json",
                    "tokenizer_config.json",
                ],
            )
            self.assertEqual(bundle.read("merges.txt"), MERGES)
            self.assertEqual(
                bundle.read("tokenizer.json"),
                tiny_models.TOKENIZER.read_bytes(),
            )


class KeysTest(ServerTest):

    @classmethod
    def setUpClass(cls):
        folder = cls.enterClassContext(tempfile.TemporaryDirectory())
        keys = pathlib.Path(folder) / "keys"
        keys.write_text("alpha\n")
        cls.FLAGS = (f"--api_key_file={keys}",)
        super().setUpClass()

    def test_every_call_needs_a_key(self):
        pb = vllm_engine_pb2
        calls = (
            (self.engine.Generate, request()),
            (self.engine.Abort, pb.AbortRequest()),
            (self.engine.HealthCheck, pb.HealthCheckRequest()),
            (self.engine.GetModelInfo, pb.GetModelInfoRequest()),
            (self.engine.GetServerInfo, pb.GetServerInfoRequest()),
            (self.engine.GetLoads, pb.GetLoadsRequest()),
            (self.engine.GetTokenizer, common_pb2.GetTokenizerRequest()),
            (self.engine.Embed, pb.EmbedRequest()),
        )
        for call, message in calls:
            self.assert_refused("UNAUTHENTICATED", "key", call, message)
            self.assert_refused(
                "UNAUTHENTICATED",
                "unknown",
                call,
                message,
                metadata=[("authorization", "Bearer beta")],
            )
        key = [("authorization", "Bearer alpha")]
        for call, message in calls[:-1]:
            answer = call(message, metadata=key)
            if isinstance(answer, grpc.Call):
                list(answer)
        self.assertEqual(health_of(self.channel, SERVICE), SERVING)


class QueueTest(ServerTest):

    FLAGS = ("--max_sequences=1", "--max_queued_requests=1")

    def test_a_full_queue(self):
        running = self.engine.Generate(long_request())
        next(running)
        waiting = self.engine.Generate(request())
        while True:
            load = self.engine.GetLoads(vllm_engine_pb2.GetLoadsRequest())
            if load.loads[0].num_waiting_reqs == 1:
                break
        for prompt_logprobs in (None, 0):
            error = self.assert_refused(
                "RESOURCE_EXHAUSTED",
                "queue",
                self.engine.Generate,
                request(prompt_logprobs=prompt_logprobs),
            )
            trailing = dict(error.trailing_metadata())
            self.assertEqual(trailing["retry-after-ms"], "1000")
        # A full queue is not unhealthy.
        answer = self.engine.HealthCheck(vllm_engine_pb2.HealthCheckRequest())
        self.assertTrue(answer.healthy)
        running.cancel()
        self.assertEqual(len(list(waiting)), 1)


class DrainTest(unittest.TestCase):

    def test_what_runs_is_finished_and_nothing_begins(self):
        with served("--drain_timeout=120s") as server:
            with grpc.insecure_channel(server.address) as channel:
                engine = vllm_engine_pb2_grpc.VllmEngineStub(channel)
                call = engine.Generate(long_request())
                next(call)
                server.signal_stop()
                health = vllm_engine_pb2.HealthCheckRequest()
                while engine.HealthCheck(health).healthy:
                    pass
                message = engine.HealthCheck(health).message
                self.assertIn("shutting down", message)
                self.assertEqual(health_of(channel, SERVICE), NOT_SERVING)
                with self.assertRaises(grpc.RpcError) as caught:
                    list(engine.Generate(request()))
                self.assertEqual(
                    caught.exception.code(), grpc.StatusCode.UNAVAILABLE
                )
                counts = [
                    response.complete.completion_tokens
                    for response in call
                    if response.HasField("complete")
                ]
                self.assertEqual(counts, [450] * 64)


class WatchdogTest(ServerTest):

    FLAGS = ("--stall_limit=1ms",)

    def test_a_stalled_engine_is_not_healthy(self):
        # With such a limit every step with a long prompt is a stall.
        was_seen = threading.Event()

        def ask():
            for first in itertools.cycle(range(VOCAB)):  # not cached yet
                list(self.engine.Generate(request([first, *PROMPT * 70])))
                if was_seen.is_set():
                    return

        thread = threading.Thread(target=ask)
        thread.start()
        health = vllm_engine_pb2.HealthCheckRequest()
        while self.engine.HealthCheck(health).message == "ready":
            pass
        was_seen.set()
        thread.join()
        while not (answer := self.engine.HealthCheck(health)).healthy:
            self.assertEqual(answer.message, "the engine is stalled")
        self.assertEqual(answer.message, "ready")


if __name__ == "__main__":
    unittest.main()
