"""The images and the compose file: by hadolint and docker-compose, and what
they take for granted of the tree.  No image is built here: that takes long."""

import functools
import os
import pathlib
import re
import subprocess
import unittest
from typing import Iterable

import tree

DOCKERFILE = (tree.DEPLOY / "Dockerfile").read_text()
RUNTIME_PACKAGES = set(
    (tree.DEPLOY / "image/runtime_packages.txt").read_text().split()
)


def needed_libraries() -> dict[str, str]:
    """Where the loader finds each library that the server itself names."""
    named = subprocess.run(
        ["objdump", "-p", tree.SERVER],
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    found = subprocess.run(
        ["ldd", tree.SERVER], capture_output=True, text=True, check=True
    ).stdout
    places = dict(re.findall(r"^\s+(\S+) => (/\S+)", found, re.MULTILINE))
    return {
        name: places[name] for name in re.findall(r"NEEDED\s+(\S+)", named)
    }


def packages_of(paths: Iterable[str]) -> set[str]:
    """The Debian packages that own libraries; /lib is a link to /usr/lib, and
    dpkg knows a file by the one name or the other."""
    names = {
        path: {path, os.path.realpath(path), path.removeprefix("/usr")}
        for path in paths
    }
    listed = subprocess.run(
        ["dpkg", "-S", *set().union(*names.values())],
        capture_output=True,
        text=True,
    ).stdout
    owners = {}
    for line in listed.splitlines():
        package, _, path = line.partition(": ")
        owners[path] = package.split(":")[0]
    packages = set()
    for path, candidates in names.items():
        known = [owners[name] for name in candidates if name in owners]
        if not known:
            raise AssertionError(f"no package owns {path}")
        packages.add(known[0])
    return packages


@functools.lru_cache(maxsize=None)
def compose_config() -> dict:
    run = subprocess.run(
        ["docker-compose", "-f", tree.DEPLOY / "compose.yaml", "config"],
        capture_output=True,
        text=True,
        env={**os.environ, "STRATA_MODELS": "/somewhere"},
    )
    if run.returncode != 0:
        raise AssertionError(run.stderr)
    return tree.yaml.safe_load(run.stdout)


class ImageTest(unittest.TestCase):

    def test_hadolint(self):
        run = subprocess.run(
            [tree.tool("hadolint"), tree.DEPLOY / "Dockerfile"],
            capture_output=True,
            text=True,
        )
        self.assertEqual(run.returncode, 0, run.stdout + run.stderr)

    def test_runtime_packages_are_those_of_the_server(self):
        owners = packages_of(needed_libraries().values())
        # Every Debian image has the C library and GCC's.
        self.assertEqual(owners - {"libc6", "libgcc-s1"}, RUNTIME_PACKAGES)

    def test_base_images_are_pinned(self):
        images = re.findall(r"^ARG \w+=(\S+)$", DOCKERFILE, re.MULTILINE)
        self.assertEqual(len(images), 2)
        for image in images:
            self.assertRegex(image, r"^[\w/]+:\d+\.\d+[\w.-]*$")
        for stage in re.findall(r"^FROM (\S+)", DOCKERFILE, re.MULTILINE):
            self.assertTrue(
                stage.startswith("${") or f" AS {stage}\n" in DOCKERFILE
            )

    def test_runs_as_the_user_of_the_manifests(self):
        (user,) = re.findall(r"^USER (\d+):(\d+)$", DOCKERFILE, re.MULTILINE)
        (template,) = tree.pod_templates("kubernetes/overlays/cpu")
        context = template["spec"]["securityContext"]
        self.assertEqual(
            user, (str(context["runAsUser"]), str(context["runAsGroup"]))
        )
        self.assertIn("\nSTOPSIGNAL SIGTERM\n", DOCKERFILE)

    def test_default_arguments_are_flags(self):
        (command,) = re.findall(r"^CMD (\[.*\])$", DOCKERFILE, re.MULTILINE)
        names = re.findall(r'"--(\w+)=', command)
        self.assertLessEqual(set(names), set(tree.flags()))
        (ports,) = re.findall(r"^EXPOSE (.*)$", DOCKERFILE, re.MULTILINE)
        self.assertEqual(
            ports.split(),
            [tree.flags()["grpc_port"], tree.flags()["http_port"]],
        )

    def test_builder_builds_what_the_build_reads(self):
        """Every package that a program is built of is in the context."""
        ignore = (tree.DEPLOY / "Dockerfile.dockerignore").read_text()
        allowed = set(re.findall(r"^!(\w+)$", ignore, re.MULTILINE))
        for folder in ("server", "client", "core", "kernels", "monitoring"):
            self.assertIn(folder, allowed)
        for word in ("model", "weights", "safetensors", "gguf"):
            self.assertNotIn(word, ignore)


class ComposeTest(unittest.TestCase):

    def test_images_are_pinned_and_hardened(self):
        for name, service in compose_config()["services"].items():
            with self.subTest(name):
                self.assertRegex(service["image"], r":v?\d+\.\d+\.\d+$")
                self.assertIs(service["read_only"], True)
                self.assertEqual(service["cap_drop"], ["ALL"])
                self.assertIn("test", service["healthcheck"])
                self.assertIn(
                    "memory", service["deploy"]["resources"]["limits"]
                )
                for port in service["ports"]:
                    self.assertTrue(port.startswith("127.0.0.1:"), port)

    def test_mounts_are_there(self):
        config = compose_config()
        mounts = {}
        for name, service in config["services"].items():
            for volume in service["volumes"]:
                source, target, _ = volume.split(":")
                mounts[name, target] = source
                if source.startswith("/") and source != "/somewhere":
                    self.assertTrue(pathlib.Path(source).is_dir(), source)
                elif source != "/somewhere":
                    self.assertIn(source, config["volumes"])
        prometheus = pathlib.Path(mounts["prometheus", "/etc/prometheus"])
        self.assertTrue((prometheus / "prometheus.yml").is_file())
        # A mount within a read-only mount needs its folder there.
        self.assertTrue((prometheus / "targets").is_dir())

    def test_prometheus_scrapes_the_server(self):
        (target,) = tree.load_yaml("compose/targets/strata.yml")
        self.assertEqual(
            target["targets"], [f"strata:{tree.flags()['http_port']}"]
        )
        self.assertIn("strata", compose_config()["services"])

    def test_grafana_gets_what_provisioning_asks_for(self):
        asked = set()
        folder = tree.ROOT / "monitoring/grafana/provisioning"
        for path in folder.rglob("*.yml"):
            asked |= set(
                re.findall(r": \$\{?([A-Z][A-Z_]+)", path.read_text())
            )
        grafana = compose_config()["services"]["grafana"]
        self.assertLessEqual(asked, set(grafana["environment"]))
        self.assertIn("PROMETHEUS_URL", asked)

    def test_server_arguments_are_flags_and_fit_the_grace(self):
        server = compose_config()["services"]["strata"]
        flags = dict(
            re.fullmatch(r"--(\w+)=(.*)", argument).groups()
            for argument in server["command"]
        )
        self.assertLessEqual(set(flags), set(tree.flags()))
        self.assertGreaterEqual(
            tree.seconds(server["stop_grace_period"]),
            tree.seconds(flags["drain_timeout"]) + 10,
        )


if __name__ == "__main__":
    unittest.main()
