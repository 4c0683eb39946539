"""ModelStreamInfer by tritonclient, unmodified."""

import asyncio
import queue
import time
import unittest
import urllib.request

import grpc
import tritonclient.grpc as triton
import tritonclient.grpc.aio as triton_aio
from tritonclient.grpc import service_pb2

from kserve_server import MODEL, flag, inputs, served, text_of

STREAM_INFER = "/inference.GRPCInferenceService/ModelStreamInfer"


def is_final(result) -> bool:
    parameters = result.get_response().parameters
    return parameters["triton_final_response"].bool_param


class StreamTest(unittest.TestCase):

    @classmethod
    def setUpClass(cls):
        cls.server = cls.enterClassContext(served())

    def setUp(self):
        self.client = triton.InferenceServerClient(self.server.address)
        self.addCleanup(self.client.close)
        self.answers = queue.Queue()

    def start(self, **kwargs):
        self.client.start_stream(
            lambda result, error: self.answers.put((result, error)), **kwargs
        )

    def send(self, request_id, *args, empty_final=False, **sampling):
        self.client.async_stream_infer(
            MODEL,
            inputs(*args, **sampling),
            request_id=request_id,
            enable_empty_final_response=empty_final,
        )

    def next(self):
        """The next response; an error is raised."""
        result, error = self.answers.get(timeout=60)
        if error is not None:
            raise error
        return result

    def read(self):
        """The responses of the next request until its final one."""
        results = [self.next()]
        while not is_final(results[-1]):
            results.append(self.next())
        return results

    def metric(self, name: str) -> float:
        page = f"http://{self.server.http_address}/metrics"
        with urllib.request.urlopen(page) as answer:
            lines = answer.read().decode().splitlines()
        return sum(
            float(line.rsplit(" ", 1)[1])
            for line in lines
            if line.startswith(name + "{") or line.startswith(name + " ")
        )

    def test_a_response_for_every_step(self):
        self.start()
        self.send(
            "a",
            "The tree",
            flag("stream"),
            flag("return_num_output_tokens"),
            flag("return_finish_reason"),
            max_tokens=20,
        )
        results = self.read()
        tokens = [r.as_numpy("num_output_tokens")[0] for r in results]
        self.assertEqual(sum(tokens), 20)
        self.assertGreater(len(results), 5)
        reasons = [r.as_numpy("finish_reason")[0] for r in results]
        self.assertEqual(reasons[-1], b"length")
        self.assertEqual(set(reasons[:-1]), {b"None"})
        joined = "".join(text_of(result) for result in results)
        whole = self.client.infer(
            MODEL,
            inputs("The tree", flag("exclude_input_in_output"), max_tokens=20),
        )
        self.assertEqual(joined, text_of(whole))

    def test_an_empty_final_response_where_it_is_asked_for(self):
        self.start()
        for prompt in (["A", flag("stream")], ["A"]):
            self.send("a", *prompt)
            without = self.read()
            self.send("a", *prompt, empty_final=True)
            *outputs, last = self.read()
            self.assertEqual(len(last.get_response().outputs), 0)
            self.assertEqual(last.get_response().id, "a")
            self.assertEqual(
                "".join(map(text_of, outputs)), "".join(map(text_of, without))
            )

    def test_without_streaming_there_is_one_response(self):
        self.start()
        self.send("a", "The tree", max_tokens=20)
        (result,) = self.read()
        whole = self.client.infer(MODEL, inputs("The tree", max_tokens=20))
        self.assertEqual(text_of(result), text_of(whole))

    def test_many_requests_on_one_stream(self):
        self.start()
        prompts = {f"r{i}": f"Number {i}" for i in range(40)}
        for request_id, prompt in prompts.items():
            self.send(request_id, prompt, flag("stream"), max_tokens=48)
        texts = dict.fromkeys(prompts, "")
        switches, num_final, last_id = 0, 0, None
        while num_final < len(prompts):
            result = self.next()
            request_id = result.get_response().id
            texts[request_id] += text_of(result)
            num_final += is_final(result)
            switches += request_id != last_id
            last_id = request_id
        self.assertGreater(switches, len(prompts))  # at the same time
        for request_id, prompt in prompts.items():
            alone = self.client.infer(
                MODEL,
                inputs(
                    prompt, flag("exclude_input_in_output"), max_tokens=48
                ),
            )
            self.assertEqual(texts[request_id], text_of(alone), prompt)

    def test_an_error_ends_its_request_only(self):
        self.start()
        self.send("long", "A", flag("stream"), max_tokens=200)
        self.send("bad", "A", temperature=-1)
        num_errors, num_final = 0, 0
        while num_errors < 1 or num_final < 1:
            result, error = self.answers.get(timeout=60)
            if error is not None:
                self.assertIn("temperature is -1", str(error))
                num_errors += 1
            else:
                num_final += is_final(result)
        self.send("next", "A")
        self.assertEqual(self.next().get_response().id, "next")

    def test_an_error_says_whose_it_is(self):
        requests = [
            service_pb2.ModelInferRequest(model_name=name, id=request_id)
            for name, request_id in ((MODEL, "no input"), ("other", "other"))
        ]
        with grpc.insecure_channel(self.server.address) as channel:
            infer = channel.stream_stream(
                STREAM_INFER,
                service_pb2.ModelInferRequest.SerializeToString,
                service_pb2.ModelStreamInferResponse.FromString,
            )
            responses = list(infer(iter(requests)))
        self.assertEqual(
            sorted(r.infer_response.id for r in responses),
            ["no input", "other"],
        )
        for response in responses:
            self.assertIn("is missing", response.error_message)
            self.assertEqual(len(response.infer_response.outputs), 0)

    def test_a_broken_message_ends_its_request_only(self):
        good = service_pb2.ModelInferRequest(model_name=MODEL, id="good")
        with grpc.insecure_channel(self.server.address) as channel:
            infer = channel.stream_stream(
                STREAM_INFER,
                None,
                service_pb2.ModelStreamInferResponse.FromString,
            )
            messages = [b"\x0a\xff", b"\x1a\x01\xff", good.SerializeToString()]
            responses = list(infer(iter(messages)))
        errors = sorted(r.error_message for r in responses)
        self.assertIn("is missing", errors[0])
        self.assertIn("cannot be parsed", errors[1])
        self.assertIn("cannot be parsed", errors[2])

    def test_an_error_as_the_status_of_the_call(self):
        self.start(headers={"triton_grpc_error": "true"})
        self.send("long", "A", flag("stream"), max_tokens=400)
        self.next()
        self.send("bad", "A", temperature=-1)
        error = None
        while error is None:
            _, error = self.answers.get(timeout=60)
        self.assertEqual(error.status(), "StatusCode.INVALID_ARGUMENT")
        self.wait_until_idle()  # the long one is cancelled

    def test_cancel_frees_all(self):
        cancelled = self.cancelled()
        self.start()
        for i in range(64):  # more than end before the cancel comes
            self.send(str(i), "A", flag("stream"), max_tokens=400)
        self.next()
        self.client.stop_stream(cancel_requests=True)
        self.wait_until_idle()
        self.assertGreater(self.cancelled(), cancelled)
        self.assertEqual(self.metric("strata_kv_orphan_pages"), 0)

    def test_closing_finishes_what_runs(self):
        self.start()
        self.send("a", "A", flag("stream"), max_tokens=100)
        self.client.stop_stream()  # returns when all is over
        self.assertTrue(is_final(self.answers.queue[-1][0]))

    def test_aio(self):
        async def requests():
            for i in range(3):
                yield {
                    "model_name": MODEL,
                    "inputs": inputs("A", flag("stream")),
                    "request_id": str(i),
                }

        async def run():
            texts = {}
            async with triton_aio.InferenceServerClient(
                self.server.address
            ) as client:
                async for result, error in client.stream_infer(requests()):
                    self.assertIsNone(error)
                    request_id = result.get_response().id
                    texts.setdefault(request_id, "")
                    texts[request_id] += text_of(result)
            return texts

        texts = asyncio.run(run())
        self.assertEqual(set(texts), {"0", "1", "2"})
        self.assertEqual(len(set(texts.values())), 1)

    def cancelled(self) -> float:
        page = f"http://{self.server.http_address}/metrics"
        with urllib.request.urlopen(page) as answer:
            lines = answer.read().decode().splitlines()
        return sum(
            float(line.rsplit(" ", 1)[1])
            for line in lines
            if line.startswith("strata_request_finished_total{")
            and 'finished_reason="cancelled"' in line
        )

    def wait_until_idle(self):
        for _ in range(1000):
            if self.metric("strata_requests_running") == 0:
                return
            time.sleep(0.01)
        self.fail("requests still run")


class DrainTest(unittest.TestCase):

    def test_what_runs_is_finished(self):
        server = self.enterContext(served())
        answers = queue.Queue()
        with triton.InferenceServerClient(server.address) as client:
            client.start_stream(
                lambda result, error: answers.put((result, error))
            )
            client.async_stream_infer(
                MODEL,
                inputs("A", flag("stream"), max_tokens=480),
                request_id="long",
            )
            answers.get(timeout=60)
            server.signal_stop()
            last = None
            while last is None or not is_final(last):
                result, error = answers.get(timeout=60)
                self.assertIsNone(error)
                last = result


if __name__ == "__main__":
    unittest.main()
