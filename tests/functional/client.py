# SPDX-License-Identifier: Apache-2.0
"""The SDK and the openstack client on the in-process Nova and Placement.

Requests go through openstacksdk to both APIs; only Keystone is not there, so
the session's authentication just says who asks.
"""

import contextlib
import io
import json
import logging
import os
import pathlib
import types

import fixtures
import openstack
from keystoneauth1 import plugin, session
from openstackclient import shell

from nova_perfvm.cloud.api import API
from tests import console

CONNECTION = "openstack.connection.Connection"
# All that is asked of it.
KEYSTONE = types.SimpleNamespace(api_version="3")
CLIENT_MANAGER = "openstackclient.common.clientmanager.ClientManager"


def _answer(_nova_conf, question):
    """Run Nova's scheduler dry in this process."""
    # Nova must not be imported before the cloud has prepared it.
    from nova_perfvm.cloud.dry_run.scheduling import DryRun

    return DryRun().answer(question)


class Operator(io.StringIO):
    """Who says yes at a terminal."""

    def __init__(self):
        super().__init__("y\n")

    def isatty(self):
        return True


class Identity(plugin.BaseAuthPlugin):
    """What Nova's fixture wants to be told instead of a token."""

    def __init__(self, user, project, roles, endpoints):
        super().__init__()
        self._endpoints = endpoints
        self._project = project
        self._headers = {
            "X-Auth-Token": user,
            "X-Auth-User": user,
            "X-Auth-Project-Id": project,
            "X-Roles": roles,
        }

    def get_headers(self, session, **kwargs):
        return self._headers

    def get_project_id(self, session, **kwargs):
        return self._project

    def get_endpoint(self, session, service_type=None, **kwargs):
        return self._endpoints.get(service_type)


class SDKMixin:
    """Connections to the cloud of a FunctionalTest.

    :cvar glance: a GlanceFixture, for tests with one beside the cloud
    :cvar keystone: a KeystoneFixture, for such tests
    """

    glance = None
    keystone = None

    def connection(self, user, roles):
        """Connect to Nova and Placement of the cloud, as openstacksdk does."""
        client = self.cloud.api
        placement = self.cloud._services.placement.fixture.endpoint
        endpoints = {"compute": client.base_url, "placement": placement}
        auth = Identity(user, client.project_id, roles, endpoints)
        return openstack.connection.Connection(
            session=session.Session(auth=auth),
            compute_endpoint_override=client.base_url,
            placement_endpoint_override=placement,
            **{
                f"{service}_endpoint_override": fixture.url
                for service, fixture in (
                    ("image", self.glance),
                    ("identity", self.keystone),
                )
                if fixture
            },
        )

    def provider(self, name):
        """Return the UUID of a provider in Placement."""
        path = f"/resource_providers?name={name}"
        (found,) = self.admin_api.placement("GET", path, key="resource_providers")
        return found["uuid"]

    def change_traits(self, name, more=(), less=()):
        """Change a provider's traits behind the back of everyone."""
        path = f"/resource_providers/{self.provider(name)}/traits"
        body = self.admin_api.placement("GET", path)
        body["traits"] = sorted({*body["traits"], *more} - {*less})
        self.admin_api.placement("PUT", path, body)

    def leak(self, name, consumer):
        """Leave an allocation of a server that is gone, and a child of nobody's."""
        provider = self.provider(name)
        body = {
            "allocations": {provider: {"resources": {"VCPU": 1}}},
            "project_id": consumer,
            "user_id": consumer,
            "consumer_generation": None,
        }
        self.admin_api.placement("PUT", f"/allocations/{consumer}", body)
        body = {"name": f"{name}_perfvm_a", "parent_provider_uuid": provider}
        self.admin_api.placement("POST", "/resource_providers", body)

    @property
    def admin_api(self):
        """What commands ask, with all rights."""
        return API(self.connection("admin", "admin"))


@contextlib.contextmanager
def services_apart():
    """Keep off the client what services log, which run in its process here.

    nova-api loads backends of its cache, which may not be installed, and says so when
    its threads are busy.
    """
    with contextlib.ExitStack() as stack:
        for name in ("stevedore.extension", "nova"):
            logger = logging.getLogger(name)
            stack.enter_context(fixtures.FakeLogger(name))
            stack.enter_context(fixtures.MockPatchObject(logger, "propagate", False))
        yield


class ClientMixin(SDKMixin):
    """The openstack client itself, in this process, without Keystone.

    :cvar POLICY: what PERFVM_POLICY says where nothing else sets it, None for nothing
    :ivar policy_said: what the last command said of its policy
    """

    POLICY = "builtin"

    def run_command(self, *arguments, **identity):
        """Run a command of ours; see run_client."""
        return self.run_client("perfvm", *arguments, **identity)

    def run_json(self, *arguments, **identity):
        """Run a command of ours; return its exit status, its rows and what it said."""
        status, stdout, said = self.run_command(*arguments, "-f", "json", **identity)
        return status, json.loads(stdout or "[]"), said

    def run_client(
        self, *arguments, user="admin", roles="admin,member,reader", stdin=None
    ):
        """Run the client, and give its exit status and what it printed.

        :param stdin: a file; nobody is there if it is None
        """
        connection = self.connection(user, roles)
        console.forget_clients()

        def setup_auth(manager):
            manager.session = connection.session
            manager.sdk_connection = connection

        stdout, stderr = io.StringIO(), io.StringIO()
        with (
            fixtures.MonkeyPatch(f"{CLIENT_MANAGER}.setup_auth", setup_auth),
            fixtures.EnvironmentVariable(
                "PERFVM_POLICY", os.environ.get("PERFVM_POLICY") or self.POLICY
            ),
            # There may be no Keystone; the client gets at it without using it.
            fixtures.MonkeyPatch(
                f"{CONNECTION}.identity",
                connection.identity if self.keystone else KEYSTONE,
            ),
            # The databases of this cloud are in this process alone.
            fixtures.MonkeyPatch("nova_perfvm.cloud.dry_run.process.ask", _answer),
            services_apart(),
            # Each run adds one for its own stderr.
            fixtures.MonkeyPatch("logging.root.handlers", []),
            fixtures.MonkeyPatch("sys.stdin", stdin or io.StringIO()),
            contextlib.redirect_stdout(stdout),
            contextlib.redirect_stderr(stderr),
        ):
            status = shell.main(["--os-auth-type", "none", *arguments])
        self.assertNotIn("Traceback", stderr.getvalue())
        said = console.without_policy(stderr.getvalue())
        self.policy_said = stderr.getvalue().removesuffix(said)
        return status, stdout.getvalue(), said

    def assert_command(self, status, words, *arguments, **identity):
        """Run a command, and look what it says and how it ends."""
        ended, *said = self.run_command(*arguments, **identity)
        self.assertEqual(status, ended, said)
        self.assertIn(words, "".join(said))

    def files(self, *texts):
        directory = pathlib.Path(self.useFixture(fixtures.TempDir()).path)
        for number, text in enumerate(texts):
            path = directory / str(number)
            path.write_text(text)
            yield str(path)
