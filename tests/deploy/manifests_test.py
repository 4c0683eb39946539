"""Every object that deploy/ can send to a cluster is valid.

kubectl builds it; kubernetes-validate has the schemas of Kubernetes, cloudcoil
those of the Prometheus operator.  The other custom resources are checked by
schemas/, written after their types and kept to what deploy/ uses, and by
Kubernetes' own schema for the pod in them.
"""

import copy
import json
import os
import pathlib
import subprocess
import tempfile
import unittest

import jsonschema
import kubernetes_validate
import yaml
from cloudcoil.models.prometheus_operator import v1 as prometheus_operator

import tree

# The oldest that knows all fields, and the newest that kubernetes-validate has.
VERSIONS = ("1.30", "1.37")

SCHEMAS = pathlib.Path(__file__).parent / "schemas"


def validate_custom(obj: tree.Object) -> None:
    """Raises for a custom resource with a wrong or an unknown field."""
    model = getattr(prometheus_operator, obj["kind"], None)
    if model is not None:
        kept = model.model_validate(obj).model_dump(
            by_alias=True, exclude_unset=True, mode="json"
        )
        # Unknown fields are dropped, not refused.
        if kept != obj:
            raise ValueError(f"{obj['kind']} has fields unknown to it: {obj}")
        return
    path = SCHEMAS / f"{obj['kind'].lower()}.json"
    jsonschema.Draft202012Validator(json.loads(path.read_text())).validate(obj)
    template = tree.pod_template(obj)
    if template is not None:
        validate_core(
            {
                "apiVersion": "v1",
                "kind": "PodTemplate",
                "metadata": {"name": "of-custom-resource"},
                "template": template,
            }
        )


def validate_core(obj: tree.Object) -> None:
    for version in VERSIONS:
        kubernetes_validate.validate(obj, version, strict=True)


def validate(obj: tree.Object) -> None:
    try:
        kubernetes_validate.validate(obj, VERSIONS[-1], strict=True)
    except kubernetes_validate.SchemaNotFoundError:
        validate_custom(obj)
    else:
        validate_core(obj)


class ManifestsTest(unittest.TestCase):

    def test_every_kustomization_is_built(self):
        built = set(tree.KUSTOMIZATIONS)
        included = {"kubernetes/base", "kubernetes/leaderworkerset/pods"}
        found = {
            str(path.parent.relative_to(tree.DEPLOY))
            for path in tree.DEPLOY.rglob("kustomization.yaml")
            if yaml.safe_load(path.read_text())["kind"] == "Kustomization"
        }
        self.assertEqual(found, built | included)

    def test_objects_are_valid(self):
        for folder in tree.KUSTOMIZATIONS:
            for obj in tree.objects(folder):
                name = f"{folder} {obj['kind']} {obj['metadata']['name']}"
                with self.subTest(name):
                    validate(obj)

    def test_prometheus_rules(self):
        printed = subprocess.run(
            [tree.DEPLOY / "kubernetes/prometheus_rules"],
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        rules = list(yaml.safe_load_all(printed))
        self.assertEqual(len(rules), 2)
        for rule in rules:
            self.assertEqual(rule["kind"], "PrometheusRule")
            self.assertTrue(rule["spec"]["groups"])
            validate(rule)

    def test_objects_live_in_one_namespace(self):
        cluster_wide = {"Namespace", "ClusterServingRuntime"}
        for folder in (*tree.WORKLOADS, "gateway"):
            for obj in tree.objects(folder):
                if obj["kind"] not in cluster_wide:
                    with self.subTest(f"{folder} {obj['kind']}"):
                        self.assertEqual(
                            obj["metadata"].get("namespace"), "strata"
                        )

    def test_names_are_unique(self):
        for folder in tree.KUSTOMIZATIONS:
            names = [
                (obj["kind"], obj["metadata"]["name"])
                for obj in tree.objects(folder)
            ]
            self.assertEqual(len(names), len(set(names)), folder)

    def test_model_image_component(self):
        """An overlay like the one in deploy/README.md."""
        with tempfile.TemporaryDirectory() as folder:
            overlay = pathlib.Path(folder).resolve()
            up = os.path.relpath(tree.DEPLOY / "kubernetes", overlay)
            (overlay / "kustomization.yaml").write_text(
                "apiVersion: kustomize.config.k8s.io/v1beta1\n"
                "kind: Kustomization\n"
                f"resources: [{up}/overlays/gpu]\n"
                f"components: [{up}/components/model-image, "
                f"{up}/components/tls]\n"
            )
            built = tree.build(overlay)
        for obj in built:
            validate(obj)
        kinds = [obj["kind"] for obj in built]
        self.assertNotIn("PersistentVolumeClaim", kinds)
        (deployment,) = [o for o in built if o["kind"] == "Deployment"]
        (init,) = deployment["spec"]["template"]["spec"]["initContainers"]
        self.assertEqual(init["image"], "strata-model:1.0.0")

    def test_validation_refuses_what_is_wrong(self):
        """Validators notice an unknown field, at the top and within pods."""
        for folder in tree.KUSTOMIZATIONS:
            for obj in tree.objects(folder):
                if "spec" not in obj:
                    continue
                name = f"{folder} {obj['kind']} {obj['metadata']['name']}"
                with self.subTest(name):
                    wrong = copy.deepcopy(obj)
                    wrong["spec"]["unknownField"] = "x"
                    with self.assertRaises(Exception):
                        validate(wrong)
                if tree.pod_template(obj) is not None:
                    with self.subTest(name + ", pod"):
                        wrong = copy.deepcopy(obj)
                        pod = tree.pod_template(wrong)["spec"]
                        pod["containers"][0]["unknownField"] = "x"
                        with self.assertRaises(Exception):
                            validate(wrong)


if __name__ == "__main__":
    unittest.main()
