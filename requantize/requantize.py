"""Writes a GGUF file anew with its matrices in another type.

Of --type become all matrices of the layers: attention and MLP.  The embedding
and the output head become --embedding_type.  Vectors (norms, biases) stay as
they are, and so do matrices that have their type already.  Rounding is that of
ggml's reference quantisation, from gguf.quants.  What a file lost when it was
quantised does not come back: convert from the most precise one there is.
"""

import argparse
import contextlib
import os
import pathlib
import sys
import tempfile
from collections.abc import Iterator

ROOT = pathlib.Path(__file__).absolute().parents[1]
sys.path.insert(0, str(ROOT))

from evaluation import command_line  # noqa: E402
from evaluation.failure import BadInput, Failure  # noqa: E402

FILE_TYPES = {  # general.file_type: LlamaFileType in gguf.constants
    "f32": 0, "f16": 1, "q4_0": 2, "q4_1": 3, "q8_0": 7, "bf16": 32}
EMBEDDINGS = ("token_embd.weight", "output.weight")


def default_embedding_type(matrix_type: str) -> str:
    """q8_0 with four bits, as llama.cpp keeps them: a rounded head costs more
    accuracy than all else."""
    return "q8_0" if matrix_type in ("q4_0", "q4_1") else matrix_type


def parse_arguments(argv: list[str]):
    parser = command_line.Parser(
        prog="./strata requantize", description=__doc__, allow_abbrev=False,
        formatter_class=argparse.RawDescriptionHelpFormatter)
    add = parser.add_argument
    add("--model", metavar="FILE.gguf", required=True,
        help="what to convert [the demo model]")
    add("--type", choices=FILE_TYPES, required=True)
    add("--embedding_type", choices=FILE_TYPES,
        help="[q8_0 with q4_0 and q4_1, else that of --type]")
    add("--out", metavar="FILE.gguf", required=True,
        help="written once it is whole")
    # What the wrong flags are, before the long part of ./strata.
    add("--check_only", action="store_true", help=argparse.SUPPRESS)
    arguments = parser.parse_args(argv)
    arguments.embedding_type = (arguments.embedding_type or
                                default_embedding_type(arguments.type))
    check(arguments)
    return arguments


def check(arguments):
    model, out = pathlib.Path(arguments.model), pathlib.Path(arguments.out)
    if not arguments.out.endswith(".gguf"):
        raise BadInput(f"--out={out}: must end with .gguf")
    if not out.absolute().parent.is_dir():
        raise BadInput(f"--out={out}: its folder is not there")
    if out.is_dir():
        raise BadInput(f"--out={out}: is a folder")
    if arguments.check_only and not model.exists():
        return  # the demo model may have to be fetched
    if not model.is_file():
        raise BadInput(f"--model={model}: is no file" if model.exists() else
                       f"--model={model}: is not there")
    if out.exists() and out.samefile(model):
        raise BadInput(f"--out={out}: is the model itself")


class Converter:
    """Of one opened GGUF file."""

    def __init__(self, path: str, matrix_type: str, embedding_type: str):
        import gguf  # late: flags are checked without it
        self._gguf = gguf
        self._path = path
        self._types = {"matrix": matrix_type, "embedding": embedding_type}
        try:
            self._reader = gguf.GGUFReader(path)
        except (ValueError, KeyError, IndexError, OverflowError) as error:
            raise BadInput(f"{path}: no GGUF file, or not whole ({error})"
                           ) from None

    def type_of(self, tensor):
        """The GGMLQuantizationType that it becomes."""
        if len(tensor.shape) < 2:
            return tensor.tensor_type
        kind = "embedding" if tensor.name in EMBEDDINGS else "matrix"
        name = self._types[kind]
        wanted = self._gguf.GGMLQuantizationType[name.upper()]
        block, _ = self._gguf.GGML_QUANT_SIZES[wanted]
        num_inputs = int(tensor.shape[0])
        if num_inputs % block:
            raise BadInput(f"{self._path}: {tensor.name} has rows of "
                           f"{num_inputs}; {name} needs a multiple of {block}")
        return wanted

    def convert(self, tensor):
        """Its data as type_of() says: an array of rows."""
        wanted = self.type_of(tensor)
        if wanted == tensor.tensor_type:
            return tensor.data
        quants = self._gguf.quants
        import numpy
        try:
            with numpy.errstate(over="raise", invalid="raise"):
                values = quants.dequantize(tensor.data, tensor.tensor_type)
                return quants.quantize(values, wanted)
        except NotImplementedError:
            raise BadInput(f"{self._path}: {tensor.name} is "
                           f"{tensor.tensor_type.name}, which gguf does not "
                           "read") from None
        except FloatingPointError:
            raise BadInput(f"{self._path}: {tensor.name} has numbers that "
                           f"{wanted.name.lower()} cannot hold") from None

    def write(self, out: str) -> Iterator[str]:
        """Writes to the file `out`; yields the name of each tensor done."""
        gguf, reader = self._gguf, self._reader
        architecture = reader.get_field(gguf.Keys.General.ARCHITECTURE)
        if architecture is None:
            raise BadInput(f"{self._path}: names no architecture")
        writer = gguf.GGUFWriter(out, arch=architecture.contents(),
                                 endianess=reader.endianess)
        writer.data_alignment = reader.alignment
        with contextlib.closing(writer):
            self._copy_metadata(writer)
            for tensor in reader.tensors:
                self._announce(writer, tensor)
            writer.write_header_to_file()
            writer.write_kv_data_to_file()
            writer.write_ti_data_to_file()
            for tensor in reader.tensors:
                writer.write_tensor_data(self.convert(tensor),
                                         tensor_endianess=reader.endianess)
                yield tensor.name

    @property
    def num_tensors(self) -> int:
        return len(self._reader.tensors)

    def _copy_metadata(self, writer):
        keys = self._gguf.Keys.General
        written = (keys.ARCHITECTURE, keys.FILE_TYPE,
                   keys.QUANTIZATION_VERSION)
        for field in self._reader.fields.values():
            # GGUF.* are the reader's own names for the file's header.
            if field.name in written or field.name.startswith("GGUF."):
                continue
            array = self._gguf.GGUFValueType.ARRAY
            writer.add_key_value(
                field.name, field.contents(), field.types[0],
                field.types[-1] if field.types[0] == array else None)
        writer.add_file_type(FILE_TYPES[self._types["matrix"]])
        writer.add_quantization_version(self._gguf.GGML_QUANT_VERSION)

    def _announce(self, writer, tensor):
        import numpy
        wanted = self.type_of(tensor)
        shape = [int(size) for size in reversed(tensor.shape)]
        block, block_bytes = self._gguf.GGML_QUANT_SIZES[wanted]
        size = int(tensor.n_elements) // block * block_bytes
        writer.add_tensor_info(tensor.name, shape, numpy.dtype("float32"),
                               size, wanted)


def main():
    arguments = parse_arguments(sys.argv[1:])
    if arguments.check_only:
        return
    try:
        converter = Converter(arguments.model, arguments.type,
                              arguments.embedding_type)
    except ImportError as error:
        raise Failure(f"needs the packages of requantize/requirements.txt "
                      f"({error})") from None
    out = pathlib.Path(arguments.out).absolute()
    with tempfile.TemporaryDirectory(dir=out.parent, prefix=".requantize.",
                                     ignore_cleanup_errors=True) as folder:
        part = pathlib.Path(folder) / out.name
        for done, name in enumerate(converter.write(str(part)), 1):
            if sys.stderr.isatty():
                print(f"\r\033[K{done}/{converter.num_tensors} {name}", end="",
                      file=sys.stderr, flush=True)
        if sys.stderr.isatty():
            print("\r\033[K", end="", file=sys.stderr)
        os.replace(part, out)
    print(f"{arguments.out}: {arguments.type}, embedding and head "
          f"{arguments.embedding_type}, {out.stat().st_size / 2**20:.0f} MiB",
          file=sys.stderr)


if __name__ == "__main__":
    sys.exit(command_line.run("requantize", main))
