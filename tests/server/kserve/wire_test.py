"""The wire format is that of tritonclient: names, numbers and types."""

import pathlib
import subprocess
import tempfile
import unittest

from google.protobuf import descriptor_pb2
from tritonclient.grpc import model_config_pb2, service_pb2

PROTOS = [
    "server/kserve/proto/grpc_service.proto",
    "server/kserve/proto/model_config.proto",
]


def load(files) -> tuple[dict, dict, dict]:
    """Fields, values of enums, and methods, by their full names."""
    fields, values, methods = {}, {}, {}

    def add_message(prefix, message):
        name = f"{prefix}.{message.name}"
        for field in message.field:
            oneof = None
            if field.HasField("oneof_index"):
                oneof = message.oneof_decl[field.oneof_index].name
            fields[f"{name}.{field.name}"] = (
                field.number,
                field.type,
                field.label,
                field.type_name,
                oneof,
            )
        for nested in message.nested_type:
            add_message(name, nested)

    for file in files:
        for message in file.message_type:
            add_message(file.package, message)
        for enum in file.enum_type:
            for value in enum.value:
                values[f"{enum.name}.{value.name}"] = value.number
        for service in file.service:
            for method in service.method:
                methods[f"{file.package}.{service.name}/{method.name}"] = (
                    method.input_type,
                    method.output_type,
                    method.client_streaming,
                    method.server_streaming,
                )
    return fields, values, methods


def ours() -> descriptor_pb2.FileDescriptorSet:
    with tempfile.TemporaryDirectory() as folder:
        out = pathlib.Path(folder) / "set"
        subprocess.run(
            ["/usr/bin/protoc", "-I.", f"--descriptor_set_out={out}", *PROTOS],
            check=True,
        )
        return descriptor_pb2.FileDescriptorSet.FromString(out.read_bytes())


def theirs(*modules) -> list[descriptor_pb2.FileDescriptorProto]:
    files = []
    for module in modules:
        file = descriptor_pb2.FileDescriptorProto()
        module.DESCRIPTOR.CopyToProto(file)
        files.append(file)
    return files


class WireTest(unittest.TestCase):

    @classmethod
    def setUpClass(cls):
        by_name = {file.name: file for file in ours().file}
        cls.service, cls.config = (by_name[name] for name in PROTOS)

    def test_the_service_is_the_same(self):
        _, _, methods = load([self.service])
        self.assertEqual(len(methods), 20)
        self.assertEqual(methods, load(theirs(service_pb2))[2])

    def test_messages_are_the_same(self):
        fields, _, _ = load([self.service])
        self.assertEqual(fields, load(theirs(service_pb2))[0])

    def test_the_configuration_is_a_part(self):
        fields, values, _ = load([self.config])
        their_fields, their_values, _ = load(theirs(model_config_pb2))
        self.assertGreater(len(fields), 10)
        for name, field in fields.items():
            self.assertEqual(field, their_fields[name], name)
        for name, number in values.items():
            self.assertEqual(number, their_values[name], name)


if __name__ == "__main__":
    unittest.main()
