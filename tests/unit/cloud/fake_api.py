# SPDX-License-Identifier: Apache-2.0
"""A cloud that the real ones of the functional tests cannot be."""

import collections
import json
import threading
import urllib.parse

import requests

from nova_perfvm import constants as const
from nova_perfvm.cloud.errors import CloudError, NotThereError

CPU_INFO = {"topology": {"cells": 2, "sockets": 1, "cores": 20, "threads": 1}}
DEDICATED = {const.CPU_POLICY: "dedicated"}


def answer(status=200, body=None, text=None, headers=()):
    """Return a response as the SDK's proxy does."""
    response = requests.Response()
    response.status_code = status
    response.reason = "a reason"
    response.headers.update(headers)
    content = text if text is not None else "" if body is None else json.dumps(body)
    response._content = content.encode()
    return response


class FakeAPI:
    """Answers as Nova, Placement, Glance and Cinder do, and counts.

    Real ones answer in the functional tests; here are clouds that those cannot
    be: large ones, and such that are half gone.
    """

    def __init__(self, hosts=1):
        self.asked = collections.Counter()
        # Several threads ask at a time.
        self._counting = threading.Lock()
        self.hosts = [f"h{number}" for number in range(hosts)]
        self.servers = []
        # Nova's entries, the newest first.
        self.migrations = []
        self.allocations = collections.defaultdict(dict)
        self.later = {}
        self.glance = [
            {"id": "image", "name": "i", "hw_x": "1"}
            | {"owner": "me", "visibility": "private"}
        ]
        # Lists of Cinder by their paths; None without a Cinder.
        self.cinder = None
        self.resource_classes = ("PCPU",)
        # Hosts of cells that are down, and which is the first in the order in which
        # Nova lists hypervisors.
        self.lost = []
        self.groups = []
        self.first_down = None
        self.no_hypervisors = None
        # Names of providers without a parent that are no hosts.
        self.strangers = []
        self.shape = dict(CPU_INFO["topology"])

    def add_server(self, name, host, specs=(), **members):
        self.servers.append(
            {
                "id": name,
                "name": name,
                "status": "ACTIVE",
                "image": {"id": "image"},
                "OS-EXT-SRV-ATTR:host": host,
                "OS-EXT-SRV-ATTR:hypervisor_hostname": host,
                "flavor": {"original_name": "f", "vcpus": 2, "ram": 1024, "disk": 1}
                | {"extra_specs": dict(specs)},
                **members,
            }
        )
        self.allocations[host][name] = {"resources": {"MEMORY_MB": 1024}}

    def _count(self, what):
        with self._counting:
            self.asked[what] += 1

    def project(self):
        return "mine"

    def images(self, **_query):
        if isinstance(self.glance, Exception):
            raise self.glance
        return iter(self.glance)

    def has_cinder(self):
        return self.cinder is not None

    def cinder_list(self, path, key):
        found = self.cinder[path.split("?")[0]]
        if isinstance(found, Exception):
            raise found
        return iter(found)

    def nova_list(self, path, key):
        self._count(path.split("?")[0])
        if key == "hypervisors":
            return iter(self._hypervisors("1000"))
        if key == "migrations":
            query = dict(urllib.parse.parse_qsl(urllib.parse.urlsplit(path).query))
            return iter([m for m in self.migrations if query.items() <= m.items()])
        servers = [server for server in self.servers if "name" in server]
        return iter({"servers": servers}.get(key, []))

    def _hypervisors(self, limit, marker=None):
        if self.no_hypervisors:
            raise self.no_hypervisors
        first = self.hosts.index(marker) + 1 if marker else 0
        last = min(first + int(limit), len(self.hosts))
        if self.first_down is not None and last > self.first_down:
            raise CloudError("Nova: GET /os-hypervisors/detail: 500: x", 500)
        return [self._hypervisor(host) for host in self.hosts[first:last]]

    def nova(self, method, path, body=None, key=""):
        query = dict(urllib.parse.parse_qsl(urllib.parse.urlsplit(path).query))
        path = urllib.parse.urlsplit(path).path
        if path.endswith("/topology"):
            self._count("topology")
            cell = {"host_node": 1, "vcpu_set": [0, 1], "memory_mb": 1024}
            cell |= {"cpu_pinning": {"0": 20, "1": 21}, "siblings": []}
            return {"nodes": [cell], "pagesize_kb": None}
        self._count(path)
        if key == "hypervisors":
            return self._hypervisors(**query)
        if key == "server_groups":
            if isinstance(self.groups, Exception):
                raise self.groups
            # Two a page, whatever is asked for.
            return self.groups[int(query["offset"]) :][:2]
        if path == "/servers":
            return self.servers
        if path.startswith("/servers/"):
            if path.rsplit("/", 1)[1] not in self.later:
                raise NotThereError("404", 404)
            return self.later[path.rsplit("/", 1)[1]]
        service = {"binary": "nova-compute", "state": "up", "status": "enabled"}
        return {
            "/os-services": [
                {"id": f"s-{host}", "host": host, **service}
                for host in self.hosts
                if host not in self.lost
            ]
            + [
                {"binary": "nova-compute", "host": host, "status": "UNKNOWN"}
                for host in self.lost
            ],
            "/os-aggregates": [],
            "/": {"version": "2.103"},
            **{f"/os-hypervisors/{h}": self._hypervisor(h) for h in self.hosts},
        }[path]

    def placement(self, method, path, body=None, key=""):
        query = dict(urllib.parse.parse_qsl(urllib.parse.urlsplit(path).query))
        path = urllib.parse.urlsplit(path).path
        if path == "/resource_providers":
            names = ("uuid", "name", "root_provider_uuid")
            self._count("provider list")
            return [
                dict.fromkeys(names, name) | {"parent_provider_uuid": None}
                for name in (*self.hosts, *self.strangers)
                if name in {query.get("name", name)} & {query.get("in_tree", name)}
            ]
        if path in {"/traits", "/resource_classes"}:
            return []
        _, kind, name, *_ = path.split("/")
        if kind == "allocations":
            return {} if name.startswith("gone") else {"h0": {}}
        self._count("provider")
        inventory = {"total": 40, "max_unit": 40, "min_unit": 1, "step_size": 1}
        inventory |= {"reserved": 0, "allocation_ratio": 1.0}
        return {
            "resource_provider_generation": 1,
            "inventories": dict.fromkeys(self.resource_classes, inventory),
            "traits": [],
            "aggregates": [],
            "allocations": self.allocations[name],
        }

    def _hypervisor(self, host):
        return {
            "id": host,
            "hypervisor_hostname": host,
            "service": {"host": host},
            "state": "up",
            "status": "enabled",
            "cpu_info": {"topology": self.shape},
        }
