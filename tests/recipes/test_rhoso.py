# SPDX-License-Identifier: Apache-2.0
"""Generated files by the definitions and the role of RHOSO's operators."""

import fnmatch

import jsonschema
import yaml

from nova_perfvm.generate.hosts import deployers
from tests.recipes import base

PLANE = "openstack-operator/config/crd/bases/core.openstack.org_{}.yaml"
# Where nova-compute's container gets files of the ConfigMap from.
SOURCE = "/var/lib/kolla/config_files/src/"


def strict(schema):
    """Return a schema that wants nothing and takes no field that it does not name.

    As a patch need not be whole, and a field that is not known would be dropped.
    """
    if isinstance(schema, list):
        return [strict(one) for one in schema]
    if not isinstance(schema, dict):
        return schema
    found = {key: strict(value) for key, value in schema.items() if key != "required"}
    if isinstance(schema.get("properties"), dict):
        found["properties"] = {k: strict(v) for k, v in schema["properties"].items()}
        if not schema.get("x-kubernetes-preserve-unknown-fields"):
            found["additionalProperties"] = False
    return found


class RHOSOTest(base.RecipeCase):
    VARIABLE = "PERFVM_RHOSO"

    def read(self, path):
        return yaml.safe_load((self.tool / path).read_text())

    def schema(self, kind):
        (version,) = self.read(PLANE.format(kind))["spec"]["versions"]
        return version["schema"]["openAPIV3Schema"]

    def test_the_control_plane_has_these_fields(self):
        schema = strict(self.schema("openstackcontrolplanes"))
        for config in self.each_config():
            files = deployers.files_of("rhoso", config)
            patch = yaml.safe_load(files["openstackcontrolplane.yaml"])
            jsonschema.validate(patch, schema)

    def test_images_are_named_where_the_page_says(self):
        images = {"novaSchedulerImage": "image", "novaAPIImage": "image"}
        version = {"spec": {"customContainerImages": images}}
        jsonschema.validate(version, strict(self.schema("openstackversions")))

    def test_hosts_read_the_config_map(self):
        service = self.read(
            "openstack-operator/config/services/"
            "dataplane_v1beta1_openstackdataplaneservice_nova.yaml"
        )
        sources = service["spec"]["dataSources"]
        named = [s["configMapRef"]["name"] for s in sources if "configMapRef" in s]
        container = self.read(
            "edpm-ansible/roles/edpm_nova/files/kolla_config/nova_compute.yaml"
        )
        places = {
            entry["source"].removeprefix(SOURCE): entry["dest"]
            for entry in container["config_files"]
        }
        for config in self.each_config():
            text = deployers.files_of("rhoso", config)["nova-extra-config.yaml"]
            found = yaml.safe_load(text)
            self.assertIn(found["metadata"]["name"], named)
            for name in found["data"]:
                (place,) = {
                    dest
                    for pattern, dest in places.items()
                    if fnmatch.fnmatch(name, pattern)
                }
                conf = name.endswith(".conf")
                expected = "nova.conf.d" if conf else "provider_config"
                self.assertEqual(f"/etc/nova/{expected}/", place)
