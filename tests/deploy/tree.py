"""What the tests of deploy/ read: the tree, its manifests as kubectl builds
them, and the flags of the server."""

import functools
import pathlib
import re
import subprocess
import sys
from typing import Any, Iterator

import yaml

# Past the links of the test's sandbox: kubectl follows none out of a folder.
DEPLOY = pathlib.Path("deploy/Dockerfile").resolve().parent
ROOT = DEPLOY.parent
SERVER = pathlib.Path("server/strata_server").resolve()

# All that one may apply.
KUSTOMIZATIONS = (
    "kubernetes/overlays/cpu",
    "kubernetes/overlays/gpu",
    "kubernetes/overlays/tls",
    "kubernetes/leaderworkerset",
    "gateway",
    "kserve",
)

# Those of them that run the server by a workload of their own.
WORKLOADS = KUSTOMIZATIONS[:4]

# What the tls component sets.
TLS_FLAGS = {
    "tls_cert",
    "tls_key",
    "tls_client_ca",
    "api_key_file",
    "admin_key_file",
}

Object = dict[str, Any]


def tool(name: str) -> str:
    """The program `name` of the tests' venv."""
    return str(pathlib.Path(sys.prefix) / "bin" / name)


def load_yaml(path: str | pathlib.Path) -> Any:
    return yaml.safe_load((DEPLOY / path).read_text())


def build(folder: str | pathlib.Path) -> list[Object]:
    """The objects of a kustomization, as `kubectl apply -k` would send them."""
    run = subprocess.run(
        [tool("kubectl"), "kustomize", str(DEPLOY / folder)],
        capture_output=True,
        text=True,
    )
    if run.returncode != 0:
        raise AssertionError(f"kubectl kustomize {folder}: {run.stderr}")
    if run.stderr:
        raise AssertionError(f"kubectl kustomize {folder} warns: {run.stderr}")
    return list(yaml.safe_load_all(run.stdout))


@functools.lru_cache(maxsize=None)
def objects(folder: str) -> tuple[Object, ...]:
    return tuple(build(folder))


def of_kind(folder: str, kind: str) -> list[Object]:
    return [each for each in objects(folder) if each["kind"] == kind]


def pod_template(obj: Object) -> Object | None:
    """The pod template in `obj`; of a ServingRuntime, one made of its parts."""
    spec = obj.get("spec", {})
    if obj["kind"] == "Deployment":
        return spec["template"]
    if obj["kind"] == "LeaderWorkerSet":
        return spec["leaderWorkerTemplate"]["workerTemplate"]
    if obj["kind"] == "ClusterServingRuntime":
        return {"metadata": {}, "spec": {"containers": spec["containers"]}}
    return None


def pod_templates(folder: str) -> Iterator[Object]:
    for obj in objects(folder):
        template = pod_template(obj)
        if template is not None:
            yield template


def containers(template: Object) -> list[Object]:
    spec = template["spec"]
    return spec.get("initContainers", []) + spec["containers"]


def config_of(folder: str) -> Object:
    """The server's --config file in a kustomization."""
    (config,) = of_kind(folder, "ConfigMap")
    return yaml.safe_load(config["data"]["strata.yaml"])


@functools.lru_cache(maxsize=None)
def flags() -> dict[str, str]:
    """The server's flags and their defaults, by --help."""
    text = subprocess.run(
        [SERVER, "--help"], capture_output=True, text=True, check=True
    ).stdout
    return dict(re.findall(r"^  --(\w+)=(.*)$", text, re.MULTILINE))


def flags_of(container: Object) -> dict[str, str]:
    """What the arguments of a container set."""
    found = {}
    for argument in container.get("args", []):
        match = re.fullmatch(r"--(\w+)=(.*)", argument)
        if match is None:
            raise AssertionError(f"{argument} is not --flag=value")
        found[match[1]] = match[2]
    return found


def seconds(text: str) -> float:
    """Of a duration as Abseil reads it: 2m, 90s, 1m30s."""
    units = {"h": 3600, "m": 60, "s": 1}
    parts = re.findall(r"(\d+(?:\.\d+)?)([hms])", text)
    if "".join(n + u for n, u in parts) != text or not parts:
        raise AssertionError(f"{text} is no duration")
    return sum(float(n) * units[u] for n, u in parts)
