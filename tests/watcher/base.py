# SPDX-License-Identifier: Apache-2.0
"""A Nova in the test's process, and processes of Watcher, which log in to it."""

import json
import os
import pathlib
import subprocess
import types

import fixtures
import requests
from testtools.content import text_content

from tests.functional import base, service
from tests.functional.elastic import ElasticTest

ROOT = pathlib.Path(__file__).parents[2]
VARIABLE = "PERFVM_WATCHER"
# Watcher takes seconds to start, and longer on a busy machine.
LIMIT_S = 300
CONF = """\
[DEFAULT]
transport_url = fake:/
log_file = {directory}/watcher.log
debug = true
[database]
connection = sqlite:///{directory}/watcher.sqlite
[oslo_messaging_notifications]
driver = noop
[watcher_clients_auth]
auth_type = v3password
auth_url = {identity}v3
username = watcher
password = secret
user_domain_id = default
project_name = service
project_domain_id = default
[nova]
valid_interfaces = internal,public
migration_interval = 0.2
[collector]
collector_plugins = compute
api_query_interval = 1
[watcher_strategies.perfvm_defragment]
policy_file = {policy}
"""


class Keystone(service.Answering):
    """Whoever asks gets a token, and the catalogue.

    :cvar catalog: URLs by the type of the service
    """

    def do_GET(self):  # noqa: N802
        here = {"rel": "self", "href": f"http://{self.headers['Host']}/v3/"}
        version = {"id": "v3.14", "status": "stable", "links": [here]}
        self.answer(200, {"version": version})

    def do_POST(self):  # noqa: N802
        self.body()
        self.extra_headers = {"X-Subject-Token": "token"}
        catalog = [
            {
                "type": kind,
                "name": kind,
                "id": kind,
                "endpoints": [
                    {"interface": "public", "url": url, "region": "R", "id": kind}
                ],
            }
            for kind, url in self.catalog.items()
        ]
        token = {
            "methods": ["password"],
            "expires_at": "2099-01-01T00:00:00.000000Z",
            "user": {"id": "w", "name": "watcher", "domain": {"id": "default"}},
            "project": {"id": "p", "name": "service", "domain": {"id": "default"}},
            "roles": [{"id": "admin", "name": "admin"}],
            "catalog": catalog,
        }
        self.answer(201, {"token": token})

    def end_headers(self):
        for name, value in getattr(self, "extra_headers", {}).items():
            self.send_header(name, value)
        super().end_headers()


class Gateway(service.Answering):
    """Passes requests on to a service that only this process can reach.

    :cvar target: its URL, without a path
    :cvar who: the headers of who asks
    """

    def pass_on(self):
        length = int(self.headers.get("Content-Length") or 0)
        kept = ("Accept", "Content-Type", "OpenStack-API-Version", "Host")
        headers = {name: self.headers[name] for name in kept if name in self.headers}
        answer = requests.request(
            self.command,
            f"{self.target}{self.path}",
            data=self.rfile.read(length),
            headers=headers | self.who,
            allow_redirects=False,
            timeout=LIMIT_S,
        )
        self.send_response(answer.status_code)
        for name, value in answer.headers.items():
            if name.lower() not in {"content-length", "transfer-encoding"}:
                self.send_header(name, value)
        self.send_header("Content-Length", str(len(answer.content)))
        self.end_headers()
        self.wfile.write(answer.content)

    do_GET = do_POST = do_PUT = do_DELETE = pass_on  # noqa: N815


class Served(service.ServiceFixture):
    """A service at a URL, by a handler of its own."""

    def __init__(self, handler, **members):
        super().__init__()
        self.HANDLER = type(handler.__name__, (handler,), members)


class WatcherCase(ElasticTest):
    """Elastic hosts, and Watcher beside them.

    :cvar HOSTS: their general servers by host
    """

    HOSTS = {"e1": 2, "e2": 1}  # noqa: RUF012

    def setUp(self):
        super().setUp()
        self.python = os.environ.get(VARIABLE)
        self.assertTrue(
            self.python, f"{VARIABLE}: name the Python of Watcher: make watcher does"
        )
        self.directory = pathlib.Path(self.useFixture(fixtures.TempDir()).path)
        self.addOnException(self.show_watchers_log)
        api = self.cloud.api
        who = {
            "X-Auth-Token": "admin",
            "X-Auth-User": "admin",
            "X-Auth-Project-Id": api.project_id,
            "X-Roles": "admin,member,reader",
        }
        nova, _, path = api.base_url.rpartition("/v2.1")
        placement = self.cloud._services.placement.fixture.endpoint
        catalog = {
            "compute": self.serve(Gateway, target=nova, who=who) + f"v2.1{path}",
            "placement": self.serve(Gateway, target=placement.rstrip("/"), who=who),
        }
        identity = self.serve(Keystone, catalog=catalog)
        catalog["identity"] = f"{identity}v3"
        self.conf = self.directory / "watcher.conf"
        self.conf.write_text(
            CONF.format(directory=self.directory, identity=identity, policy=self.path)
        )
        self.watcher("start")
        for host in self.HOSTS:
            self.cloud.start_host(host)
            self.enroll(host)
        self.general = {
            host: [self.boot(base.GENERAL_2, host=host) for _ in range(count)]
            for host, count in self.HOSTS.items()
        }

    def serve(self, handler, **members):
        return self.useFixture(Served(handler, **members)).url

    def watcher(self, task, **arguments):
        """Let a process of Watcher do something; return what it says."""
        engine = pathlib.Path(__file__).with_name("engine.py")
        done = subprocess.run(
            [self.python, engine, self.conf, task, json.dumps(arguments)],
            capture_output=True,
            check=False,
            cwd=self.directory,
            text=True,
            timeout=LIMIT_S,
        )
        self.assertEqual(0, done.returncode, done.stderr[-3000:])
        return json.loads(done.stdout.splitlines()[-1])

    def create(self, scope=(), kind="CONTINUOUS", **parameters):
        arguments = {"parameters": parameters, "scope": scope, "kind": kind}
        return self.watcher("create", **arguments)

    def audit(self, uuid, minute=0, state="ONGOING"):
        """Return the action plan of an audit that ends in a state."""
        found = self.watcher("audit", uuid=uuid, minute=minute)
        self.assertEqual(state, found["state"])
        return types.SimpleNamespace(**found["plan"])

    def execute(self, plan, minute=0):
        found = self.watcher("execute", uuid=plan.uuid, minute=minute)
        return types.SimpleNamespace(**found)

    def found(self, plan):
        """Return how many servers would find room, and by how many migrations."""
        indicators = plan.indicators
        self.assertEqual(len(plan.actions), indicators.pop("instance_migrations_count"))
        return indicators.pop("perfvm_gained_servers"), len(plan.actions)

    def moved(self, plan):
        return {action["resource_id"] for action in plan.actions}

    def where(self, server):
        shown = self.servers.show(server)
        return shown.status, shown.host

    def show_watchers_log(self, _exc_info):
        log = self.directory / "watcher.log"
        if log.exists():
            text = "\n".join(log.read_text().splitlines()[-150:])
            self.addDetail("watcher", text_content(text))
