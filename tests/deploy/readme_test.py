"""deploy/README.md says what is: flags, paths, overlay, times, sizes."""

import math
import os
import pathlib
import re
import tempfile
import unittest

import tree

README = (tree.DEPLOY / "README.md").read_text()


def section(title: str) -> str:
    (text,) = re.findall(
        rf"^## {re.escape(title)}\n(.*?)(?=^## |\Z)",
        README,
        re.MULTILINE | re.DOTALL,
    )
    return text


def flag_table() -> dict[str, str]:
    """The defaults of the table, by flag."""
    rows = re.findall(
        r"^\| (`--.*?`) \| (?:`(.*?)`)? ?\|",
        section("Flags"),
        re.MULTILINE,
    )
    return {
        flag: default
        for names, default in rows
        for flag in re.findall(r"--(\w+)", names)
    }


class ReadmeTest(unittest.TestCase):

    def test_every_flag_and_no_other(self):
        table = flag_table()
        self.assertEqual(set(table), set(tree.flags()))
        for flag, default in tree.flags().items():
            with self.subTest(flag):
                self.assertEqual(table[flag], default)

    def test_flags_of_the_text_are_the_servers(self):
        known = set(tree.flags())
        # Of docker, kubectl and the other programs.
        known |= {
            "target",
            "rm",
            "gpus",
            "read-only",
            "cap-drop",
            "tmpfs",
            "cpuset-cpus",
            "cpus",
            "from-file",
            "config-file",
            "model",
            "memory",
            "context",
            "help",
        }
        for flag in re.findall(r"--([a-z][\w-]*)", README):
            self.assertIn(flag, known)

    def test_links(self):
        for target in re.findall(r"\]\(([^)#]+)\)", README):
            with self.subTest(target):
                self.assertTrue((tree.DEPLOY / target).exists())
        for anchor in re.findall(r"\]\(#([^)]+)\)", README):
            titles = re.findall(r"^## (.*)$", README, re.MULTILINE)
            anchors = [
                re.sub(r"[^\w -]", "", title).lower().replace(" ", "-")
                for title in titles
            ]
            self.assertIn(anchor, anchors)

    def test_paths(self):
        for path in re.findall(r"(?<![\w/])(deploy/[\w./-]+)", README):
            with self.subTest(path):
                self.assertTrue((tree.ROOT / path.rstrip(".")).exists())

    def test_overlay_of_the_quick_start(self):
        (overlay,) = re.findall(r"```yaml\n(.*?)```", README, re.DOTALL)
        with tempfile.TemporaryDirectory() as name:
            folder = pathlib.Path(name).resolve()
            up = os.path.relpath(tree.DEPLOY, folder)
            (folder / "kustomization.yaml").write_text(
                overlay.replace("- deploy/", f"- {up}/")
            )
            (folder / "strata.yaml").write_text("model: /models\n")
            built = tree.build(folder)
        (deployment,) = [o for o in built if o["kind"] == "Deployment"]
        images = [
            container["image"]
            for container in tree.containers(deployment["spec"]["template"])
        ]
        self.assertEqual(
            [image.split(":")[0] for image in images],
            ["registry.example/qwen3-8b", "registry.example/strata"],
        )
        (config,) = [o for o in built if o["kind"] == "ConfigMap"]
        self.assertEqual(config["data"], {"strata.yaml": "model: /models\n"})

    def test_drain_table(self):
        (template,) = tree.pod_templates("kubernetes/overlays/cpu")
        spec = template["spec"]
        config = tree.config_of("kubernetes/overlays/cpu")
        wait = tree.seconds(config["shutdown_delay"])
        drain = tree.seconds(config["drain_timeout"])
        times = [
            int(number)
            for number in re.findall(
                r"^\| (?:up to )?(\d+) s \|",
                section("Drain and rollout"),
                re.MULTILINE,
            )
        ]
        self.assertEqual(
            times,
            [
                0,
                wait,
                wait + drain,
                wait + drain + 5,
                spec["terminationGracePeriodSeconds"],
            ],
        )

    def test_sizes(self):
        """The arithmetic of the section on size, for Qwen3-8B."""
        text = section("Size")
        layers, heads, head_dim, tokens = 36, 8, 128, 32896
        per_token = 2 * heads * head_dim * 2
        for leaders, kib, mib, count in (
            (layers, "144 KiB", "4,626 MiB", "8"),
            (layers // 4, "36 KiB", "1,157 MiB", "35"),
        ):
            self.assertEqual(kib, f"{leaders * per_token // 1024} KiB")
            sequence = leaders * per_token * tokens / 2**20
            self.assertEqual(mib, f"{math.floor(sequence + 0.5):,} MiB")
            self.assertEqual(count, str(int(40 * 1024 // sequence)))
            self.assertIn(kib, text)
            self.assertIn(mib, text)
        self.assertIn("runs 8 or 35 of them", text)


if __name__ == "__main__":
    unittest.main()
