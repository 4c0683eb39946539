"""The wire format is that of smg-grpc-proto: names, numbers and types."""

import pathlib
import subprocess
import tempfile
import unittest

from google.protobuf import descriptor_pb2
from smg_grpc_proto.generated import common_pb2, vllm_engine_pb2

PROTOS = [
    "server/vllm/proto/common.proto",
    "server/vllm/proto/vllm_engine.proto",
]
# Without their fields, as they are refused whole.
NOT_READ = ["MultimodalInputs", "MediaRefs"]
# What the server never says.
NOT_SENT = {
    ".vllm.grpc.engine.GenerateComplete": [
        "kv_transfer_params",
        "kv_transfer_params_json",
        "spec_accepted_tokens",
        "spec_draft_tokens",
        "media_identity",
    ],
    ".vllm.grpc.engine.SchedulerLoad": [
        "cache_hit_rate",
        "num_waiting_uncached_tokens",
    ],
}


def load(file: descriptor_pb2.FileDescriptorProto) -> tuple[dict, dict]:
    """Fields by message, and methods, by their full names."""
    messages, methods = {}, {}

    def add(prefix, message):
        name = f"{prefix}.{message.name}"
        messages[name] = fields = {}
        for field in message.field:
            oneof = None
            if field.HasField("oneof_index"):
                oneof = message.oneof_decl[field.oneof_index].name
            fields[field.name] = (
                field.number,
                field.type,
                field.label,
                field.type_name,
                oneof,
            )
        for nested in message.nested_type:
            add(name, nested)

    for message in file.message_type:
        add(f".{file.package}", message)
    for service in file.service:
        for method in service.method:
            methods[f"{file.package}.{service.name}/{method.name}"] = (
                method.input_type,
                method.output_type,
                method.client_streaming,
                method.server_streaming,
            )
    return messages, methods


def ours() -> list[descriptor_pb2.FileDescriptorProto]:
    with tempfile.TemporaryDirectory() as folder:
        out = pathlib.Path(folder) / "set"
        subprocess.run(
            ["/usr/bin/protoc", "-I.", f"--descriptor_set_out={out}", *PROTOS],
            check=True,
        )
        files = descriptor_pb2.FileDescriptorSet.FromString(out.read_bytes())
    by_name = {file.name: file for file in files.file}
    return [by_name[name] for name in PROTOS]


def theirs(module) -> descriptor_pb2.FileDescriptorProto:
    file = descriptor_pb2.FileDescriptorProto()
    module.DESCRIPTOR.CopyToProto(file)
    return file


class WireTest(unittest.TestCase):

    @classmethod
    def setUpClass(cls):
        common, engine = ours()
        cls.common, _ = load(common)
        cls.messages, cls.methods = load(engine)
        cls.their_common, _ = load(theirs(common_pb2))
        cls.their_messages, cls.their_methods = load(theirs(vllm_engine_pb2))

    def test_the_service_is_the_same(self):
        self.assertEqual(len(self.methods), 12)
        self.assertEqual(self.methods, self.their_methods)

    def test_what_is_there_is_the_same(self):
        for part, whole in (
            (self.common, self.their_common),
            (self.messages, self.their_messages),
        ):
            self.assertGreater(len(part), 5)
            for name, fields in part.items():
                for field, wire in fields.items():
                    self.assertEqual(wire, whole[name][field], (name, field))

    def test_no_field_of_a_request_is_overlooked(self):
        for name, fields in self.their_messages.items():
            short = name.rsplit(".", 1)[1]
            if short in NOT_READ or name not in self.messages:
                continue
            if short == "GetServerInfoResponse":
                continue  # twelve of them tell of what Strata has not
            missing = [f for f in fields if f not in self.messages[name]]
            self.assertEqual(missing, NOT_SENT.get(name, []), name)


if __name__ == "__main__":
    unittest.main()
