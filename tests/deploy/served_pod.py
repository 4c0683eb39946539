"""The server as the pod of a kustomization starts it, on this machine."""

import pathlib
import re
import signal
import subprocess
import tempfile

import tree

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


class ServedPod:
    """Runs from its construction until stop().

    The arguments are the container's.  `files` are the contents of secrets by
    their path in the pod; the config is the kustomization's.
    """

    def __init__(self, folder: str, files: dict[str, bytes] | None = None):
        self._folder = tempfile.TemporaryDirectory()
        (template,) = tree.pod_templates(folder)
        (server,) = template["spec"]["containers"]
        (config,) = tree.of_kind(folder, "ConfigMap")
        files = dict(files or {})
        for name, text in config["data"].items():
            files["/etc/strata/" + name] = text.encode()
        for path, content in files.items():
            self.path(path).parent.mkdir(parents=True, exist_ok=True)
            self.path(path).write_bytes(content)
        arguments = [
            argument.replace("$(CPU_LIMIT)", "1").replace(
                "=/etc/", f"={self._folder.name}/etc/"
            )
            for argument in server["args"]
        ]
        self._log = open(self.path("/log"), "w+")
        self._process = subprocess.Popen(
            [tree.SERVER, *arguments, *OWN],
            stdout=subprocess.PIPE,
            stderr=self._log,
            text=True,
        )
        line = self._process.stdout.readline()
        ports = re.fullmatch(
            r"listening grpc=127\.0\.0\.1:(\d+) http=127\.0\.0\.1:(\d+)\n",
            line,
        )
        if ports is None:
            self._log.seek(0)
            raise AssertionError(f"the server failed: {self._log.read()}")
        self.grpc_port, self.http_port = map(int, ports.groups())

    def path(self, path: str) -> pathlib.Path:
        """Where a path of the pod is."""
        return pathlib.Path(self._folder.name + path)

    def stop(self) -> int:
        """The exit status after SIGTERM."""
        self._process.send_signal(signal.SIGTERM)
        status = self._process.wait(timeout=20)  # idle: nothing to wait for
        self._process.stdout.close()
        self._log.close()
        self._folder.cleanup()
        return status
