# SPDX-License-Identifier: Apache-2.0
"""OpenStack-Helm's charts, rendered by helm with generated values."""

import base64
import shutil

import yaml

from nova_perfvm.generate.hosts import deployers
from tests.recipes import base

HOST = "compute1"
PROVIDERS = deployers.PROVIDER_DIRECTORY


class HelmTest(base.RecipeCase):
    VARIABLE = "PERFVM_HELM"

    def setUp(self):
        super().setUp()
        charts = self.named("PERFVM_OPENSTACK_HELM")
        for name in ("nova", "placement"):
            shutil.copytree(charts / name, self.directory / name)
            shutil.copytree(
                charts / "helm-toolkit", self.directory / name / "charts/helm-toolkit"
            )

    def render(self, chart, values):
        """Return what a chart makes of values: {(kind, name): object}."""
        self.write("values.yaml", values)
        text = self.run_tool(
            *(self.tool, "template", chart, chart, "--namespace", "openstack"),
            *("--values", "values.yaml"),
        )
        made = [document for document in yaml.safe_load_all(text) if document]
        return {(one["kind"], one["metadata"]["name"]): one for one in made}

    def secret(self, made, name, key):
        return base64.b64decode(made["Secret", name]["data"][key]).decode()

    def compute(self, made):
        """Return the DaemonSet's pods that run on the host."""
        (found,) = [
            one["spec"]["template"]["spec"]
            for (kind, name), one in made.items()
            if kind == "DaemonSet" and f"-{HOST}" in name
        ]
        return found

    def mounted(self, pod, path):
        """Return the volume that the first container has at a path, None for none."""
        volumes = {volume["name"]: volume for volume in pod["volumes"]}
        found = [
            volumes[mount["name"]]
            for mount in pod["containers"][0]["volumeMounts"]
            if mount["mountPath"] == path
        ]
        return found[0] if found else None

    def test_what_services_read(self):
        for config in self.each_config():
            root = self.write_files("helm", config)
            values = (root / "nova.yaml").read_text()
            made = self.render("nova", values.replace("name: HOST", f"name: {HOST}"))
            pod = self.compute(made)
            # Settings of the chart's own are there, too.
            compute = self.secret(made, self.settings_of(pod), "nova.conf")
            self.assertIn("compute_driver = libvirt.LibvirtDriver\n", compute)
            scheduler = self.secret(made, "nova-etc", "nova.conf")
            for name in ("nova-scheduler", "nova-api-osapi"):
                reader = made["Deployment", name]["spec"]["template"]["spec"]
                policy = self.mounted(reader, "/etc/nova/perfvm.yaml")
                self.assertEqual("nova-perfvm-policy", policy["configMap"]["name"])
            provider = self.mounted(pod, PROVIDERS)
            if config.provider is None:
                self.assertIsNone(provider)
            else:
                self.assertEqual({"path": PROVIDERS}, provider["hostPath"])
            made = self.render("placement", (root / "placement.yaml").read_text())
            placement = self.secret(made, "placement-etc", "placement.conf")
            self.assert_divided(config, compute, scheduler, placement)

    def settings_of(self, pod):
        """Return the secret that has the host's nova.conf."""
        names = {
            volume.get("secret", {}).get("secretName") for volume in pod["volumes"]
        }
        (name,) = [name for name in names if name and name.startswith("nova-compute-")]
        return name
