"""Tests requantize.py: exact blocks, what is converted, and what the server
makes of it."""

import contextlib
import io
import pathlib
import struct
import sys
import tempfile
import unittest
from unittest import mock

import gguf
import numpy

ROOT = pathlib.Path(__file__).absolute().parents[2]
sys.path.insert(0, str(ROOT))
from evaluation import command_line  # noqa: E402
from evaluation.connection import Connection  # noqa: E402
from evaluation.server_process import ServerProcess  # noqa: E402
from requantize import requantize  # noqa: E402

SERVER = ROOT / "server/strata_server"
FLAGS = ["--precision=f32", "--threads=1", "--kv_memory=16MiB"]
VOCAB, HIDDEN, INTERMEDIATE, LAYERS, HEADS = 257, 64, 96, 3, 2
TYPES = gguf.GGMLQuantizationType
TOKENS = [(7 * i * i + 3) % VOCAB for i in range(60)]


def make_tensors(seed: int) -> dict[str, numpy.ndarray]:
    """A model of the Llama family, in f32."""
    random = numpy.random.default_rng(seed)
    shapes = {"token_embd.weight": (VOCAB, HIDDEN),
              "output.weight": (VOCAB, HIDDEN),
              "output_norm.weight": (HIDDEN,)}
    for layer in range(LAYERS):
        for name, shape in (
                ("attn_norm", (HIDDEN,)), ("ffn_norm", (HIDDEN,)),
                ("attn_q", (HIDDEN, HIDDEN)), ("attn_k", (HIDDEN, HIDDEN)),
                ("attn_v", (HIDDEN, HIDDEN)), ("attn_output", (HIDDEN, HIDDEN)),
                ("ffn_gate", (INTERMEDIATE, HIDDEN)),
                ("ffn_up", (INTERMEDIATE, HIDDEN)),
                ("ffn_down", (HIDDEN, INTERMEDIATE))):
            shapes[f"blk.{layer}.{name}.weight"] = shape
    return {name: (random.normal(size=shape) / 8 + (len(shape) == 1)
                   ).astype(numpy.float32) for name, shape in shapes.items()}


def write_gguf(path, tensors):
    writer = gguf.GGUFWriter(path, "llama")
    writer.add_block_count(LAYERS)
    writer.add_context_length(128)
    writer.add_embedding_length(HIDDEN)
    writer.add_feed_forward_length(INTERMEDIATE)
    writer.add_head_count(HEADS)
    writer.add_head_count_kv(HEADS)
    writer.add_layer_norm_rms_eps(1e-5)
    writer.add_rope_freq_base(10000.0)
    writer.add_vocab_size(VOCAB)
    writer.add_file_type(0)
    writer.add_array("general.languages", ["en", "fr"])
    for name, values in tensors.items():
        writer.add_tensor(name, values)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


def half(value: float) -> float:
    return struct.unpack("<e", struct.pack("<e", value))[0]


def read_block(kind: str, block: bytes) -> list[float]:
    """By the format's definition (kernels/dtype.h)."""
    d, = struct.unpack_from("<e", block)
    if kind == "q8_0":
        return [d * q for q in struct.unpack_from("<32b", block, 2)]
    m, skip = (0.0, 2) if kind == "q4_0" else (
        struct.unpack_from("<e", block, 2)[0], 4)
    pairs = block[skip:skip + 16]
    nibbles = [pair & 15 for pair in pairs] + [pair >> 4 for pair in pairs]
    offset = 8 if kind == "q4_0" else 0
    return [d * (nibble - offset) + m for nibble in nibbles]


def step(kind: str, values) -> float:
    """The distance of neighbours that the format can hold."""
    if kind == "q8_0":
        return max(map(abs, values)) / 127
    if kind == "q4_1":
        return (max(values) - min(values)) / 15
    return max(map(abs, values)) / 8


class RequantizeTest(unittest.TestCase):

    def setUp(self):
        scratch = tempfile.TemporaryDirectory()
        self.addCleanup(scratch.cleanup)
        self.folder = pathlib.Path(scratch.name)
        self.model = self.folder / "model.gguf"

    def run_requantize(self, *flags):
        """Exit status, standard error."""
        err = io.StringIO()
        argv = ["requantize", f"--model={self.model}",
                f"--out={self.folder}/out.gguf", *flags]
        with (mock.patch.object(sys, "argv", argv),
              contextlib.redirect_stderr(err)):
            status = command_line.run("requantize", requantize.main)
        return status, err.getvalue()

    def converted(self, *flags):
        status, err = self.run_requantize(*flags)
        self.assertEqual(status, 0, err)
        return gguf.GGUFReader(self.folder / "out.gguf")

    def test_exact_blocks(self):
        # Powers of two and sixteenths, so that scales are exact: what a block
        # must be follows by hand.
        ramp = [(i % 16 - 8) / 4 for i in range(32)]  # -2 ... 1.75
        tensors = make_tensors(1)
        tensors["blk.0.attn_q.weight"][0, :32] = ramp
        write_gguf(self.model, tensors)
        nibbles = bytes(17 * (i % 16) for i in range(16))
        for kind, block in (
                # The largest magnitude, -2, is -8 * d.
                ("q4_0", struct.pack("<e", 0.25) + nibbles),
                ("q4_1", struct.pack("<ee", 0.25, -2.0) + nibbles),
                ("q8_0", struct.pack("<e", 2 / 127) + struct.pack("<32b", *(
                    # Halves away from zero.
                    int(x * 63.5 + (0.5 if x > 0 else -0.5)) for x in ramp)))):
            tensor = self.tensors(self.converted(f"--type={kind}")
                                  )["blk.0.attn_q.weight"]
            self.assertEqual(tensor.data[0].tobytes()[:len(block)], block, kind)

    @staticmethod
    def tensors(reader):
        return {tensor.name: tensor for tensor in reader.tensors}

    def test_values_are_within_half_a_step(self):
        tensors = make_tensors(2)
        tensors["blk.1.ffn_up.weight"][3, 32:64] = 0.0
        write_gguf(self.model, tensors)
        for kind, size in (("q4_0", 18), ("q4_1", 20), ("q8_0", 34)):
            made = self.tensors(self.converted(f"--type={kind}"))
            rows = made["blk.1.ffn_up.weight"].data
            for row, wanted in zip(rows, tensors["blk.1.ffn_up.weight"]):
                for b in range(HIDDEN // 32):
                    block = row.tobytes()[b * size:(b + 1) * size]
                    values = wanted[32 * b:32 * b + 32].tolist()
                    # q4_0 has no 8: values opposite to the largest one may be
                    # a whole step away.
                    limit = step(kind, values) * (
                        1.001 if kind == "q4_0" else 0.51)
                    if kind != "q8_0":  # the scale's and offset's rounding
                        limit += 2 * max(map(abs, values)) / 1024
                    limit += max(map(abs, values)) / 2048
                    for got, value in zip(read_block(kind, block), values):
                        self.assertLessEqual(abs(got - value), limit + 1e-12)

    def test_16_bits_are_rounded_to_nearest(self):
        tensors = make_tensors(3)
        write_gguf(self.model, tensors)
        name = "blk.2.ffn_down.weight"
        f16 = self.tensors(self.converted("--type=f16"))[name].data
        self.assertEqual(f16.ravel().tolist(),
                         [half(x) for x in tensors[name].ravel().tolist()])
        bf16 = self.tensors(self.converted("--type=bf16"))[name].data
        bits = bf16.view(numpy.uint16).astype(numpy.uint32) << 16
        relative = abs(bits.view(numpy.float32) / tensors[name] - 1)
        self.assertLessEqual(relative.max(), 2 ** -8)
        self.assertGreater(relative.max(), 2 ** -10)
        f32 = self.tensors(self.converted("--type=f32"))[name].data
        self.assertTrue((f32 == tensors[name]).all())

    def test_what_is_converted(self):
        write_gguf(self.model, make_tensors(4))
        for flags, matrix, embedding, file_type in (
                (["--type=q4_0"], "Q4_0", "Q8_0", 2),
                (["--type=q4_1"], "Q4_1", "Q8_0", 3),
                (["--type=q8_0"], "Q8_0", "Q8_0", 7),
                (["--type=bf16"], "BF16", "BF16", 32),
                (["--type=q4_0", "--embedding_type=f16"], "Q4_0", "F16", 2)):
            reader = self.converted(*flags)
            for name, tensor in self.tensors(reader).items():
                wanted = ("F32" if "norm" in name else embedding
                          if name.startswith(("token", "output")) else matrix)
                self.assertEqual(tensor.tensor_type.name, wanted, name)
            self.assertEqual(
                reader.get_field("general.file_type").contents(), file_type)
            source = gguf.GGUFReader(self.model)
            for key, field in source.fields.items():
                if key.startswith("GGUF.") or key == "general.file_type":
                    continue
                self.assertEqual(reader.get_field(key).contents(),
                                 field.contents(), key)

    def test_the_same_type_again_changes_nothing(self):
        write_gguf(self.model, make_tensors(5))
        once = {name: tensor.data.tobytes() for name, tensor in
                self.tensors(self.converted("--type=q4_1")).items()}
        (self.folder / "out.gguf").rename(self.model)
        twice = {name: tensor.data.tobytes() for name, tensor in
                 self.tensors(self.converted("--type=q4_1")).items()}
        self.assertEqual(once, twice)

    def test_refused(self):
        tensors = make_tensors(6)
        tensors["blk.0.ffn_up.weight"] = numpy.ones((4, 48), numpy.float32)
        tensors["blk.0.ffn_gate.weight"][0, 0] = 1e6
        write_gguf(self.model, tensors)
        for flags, part in (
                (["--type=q4_0"], "blk.0.ffn_up.weight has rows of 48; q4_0 "
                 "needs a multiple of 32"),
                (["--type=f16"], "blk.0.ffn_gate.weight has numbers that f16"),
                (["--type=q5_0"], "invalid choice: 'q5_0'"),
                ([], "--type"),
                (["--type=f32", "--out=x"], "must end with .gguf"),
                (["--type=f32", "--out=/gone/x.gguf"], "folder is not there"),
                (["--type=f32", f"--out={self.model}"], "the model itself"),
                (["--type=f32", f"--model={self.folder}"], "is no file"),
                (["--type=f32", "--model=gone"], "is not there")):
            status, err = self.run_requantize(*flags)
            self.assertEqual(status, 2, err)
            self.assertIn(part, err)
            self.assertEqual(err.count("\n"), 1, err)
        whole = self.model.read_bytes()
        for content in (b"", b"GGUF", whole[:200], whole[:-40], b"x" * 100):
            self.model.write_bytes(content)
            status, err = self.run_requantize("--type=f32")
            self.assertEqual((status, err.count("\n")), (2, 1), err)
        # No half of a file is left.
        self.assertEqual(list(self.folder.iterdir()), [self.model])

    def logprobs(self, path) -> list[float]:
        with (ServerProcess(SERVER, [f"--model={path}", *FLAGS]) as server,
              Connection(server.address, 1) as to):
            return [one.chosen.logprob
                    for one in to.score(TOKENS, "full").logprobs]

    def test_the_server_reads_what_was_written(self):
        write_gguf(self.model, make_tensors(7))
        exact = self.logprobs(self.model)
        self.assertEqual(len(exact), len(TOKENS) - 1)
        for kind, limit in (("bf16", 0.02), ("f16", 0.003), ("q8_0", 0.04),
                            ("q4_1", 0.4), ("q4_0", 0.5)):
            self.converted(f"--type={kind}")
            got = self.logprobs(self.folder / "out.gguf")
            apart = sum(abs(a - b) for a, b in zip(got, exact)) / len(exact)
            self.assertLess(apart, limit, kind)
            self.assertGreater(apart, 0, kind)
            # As f32 it is the same model: what the types say is what is run.
            back = self.folder / "back.gguf"
            status, err = self.run_requantize(
                f"--model={self.folder}/out.gguf", "--type=f32",
                f"--out={back}")
            self.assertEqual(status, 0, err)
            for a, b in zip(got, self.logprobs(back)):
                self.assertAlmostEqual(a, b, delta=1e-4, msg=kind)


if __name__ == "__main__":
    unittest.main()
