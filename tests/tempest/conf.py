# SPDX-License-Identifier: Apache-2.0
"""tempest.conf for a sandbox."""

import configparser
import io

from nova_perfvm.generate.tempest import tempest_conf
from nova_perfvm.policy import loader
from tests.processes.content import IMAGE

# On a starved machine everything takes its time.
BUILD_TIMEOUT = 300


def sandbox_conf(sandbox, directory):
    """Return tempest.conf.

    :param sandbox: one that is up
    :param directory: where Tempest may write
    """
    conf = configparser.ConfigParser(interpolation=None)
    policy = loader.load(str(sandbox.layout.policy))
    conf.read_string(tempest_conf(policy, policy.pinned_classes[0].name))
    cloud = sandbox.settings.cloud
    auth = cloud["auth"]
    connection = sandbox.connect()
    image = connection.image.find_image(IMAGE).id
    flavors = [
        connection.compute.find_flavor(conf["perfvm"][name]).id
        for name in ("general_flavor", "general_flavor_alt")
    ]
    conf.read_dict(
        {
            "DEFAULT": {"log_dir": str(directory), "log_file": "tempest.log"},
            "oslo_concurrency": {"lock_path": str(directory / "locks")},
            "auth": {
                "admin_username": auth["username"],
                "admin_password": auth["password"],
                "admin_project_name": auth["project_name"],
                "admin_domain_name": auth["user_domain_name"],
                # No agent plugs networks in the sandbox.
                "create_isolated_networks": False,
            },
            "identity": {
                "uri_v3": auth["auth_url"],
                "auth_version": "v3",
                "region": cloud["region_name"],
            },
            "compute": {
                "image_ref": image,
                "image_ref_alt": image,
                "flavor_ref": flavors[0],
                "flavor_ref_alt": flavors[1],
                "min_compute_nodes": len(sandbox.settings.pretended),
                "max_microversion": "latest",
                "build_timeout": BUILD_TIMEOUT,
            },
            "compute-feature-enabled": {"resize": True},
            "placement": {"max_microversion": "latest"},
            "validation": {"run_validation": False},
            "service_available": {
                **dict.fromkeys(("nova", "glance", "neutron"), True),
                **dict.fromkeys(("cinder", "swift", "horizon"), False),
            },
            "network": {"project_networks_reachable": False},
        }
    )
    text = io.StringIO()
    conf.write(text)
    return text.getvalue()
