"""The server as the pod of a kustomization starts it, on this machine."""

import contextlib
import pathlib
import sys
import tempfile
from collections.abc import Iterator

import tree

sys.path.insert(0, str(pathlib.Path(__file__).absolute().parents[2]))
from evaluation.server_process import ServerProcess  # noqa: E402

MODEL = pathlib.Path("tests/golden/llama-tied").resolve()

# In place of what a pod has to itself.
OWN = (
    f"--model={MODEL}",
    "--host=127.0.0.1",
    "--grpc_port=0",
    "--http_port=0",
    "--kv_memory=16MiB",
    "--shutdown_delay=0",
)


@contextlib.contextmanager
def served_pod(
    folder: str, files: dict[str, bytes] | None = None
) -> Iterator[ServerProcess]:
    """The arguments are the container's.

    `files` are the contents of secrets by their path in the pod; the config is
    the kustomization's.
    """
    (template,) = tree.pod_templates(folder)
    (server,) = template["spec"]["containers"]
    (config,) = tree.of_kind(folder, "ConfigMap")
    files = dict(files or {})
    for name, text in config["data"].items():
        files["/etc/strata/" + name] = text.encode()
    with tempfile.TemporaryDirectory() as root:
        for path, content in files.items():
            here = pathlib.Path(root + path)
            here.parent.mkdir(parents=True, exist_ok=True)
            here.write_bytes(content)
        arguments = [
            argument.replace("$(CPU_LIMIT)", "1").replace(
                "=/etc/", f"={root}/etc/"
            )
            for argument in server["args"]
        ]
        with ServerProcess(tree.SERVER, [*arguments, *OWN]) as process:
            yield process
