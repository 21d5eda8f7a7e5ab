# SPDX-License-Identifier: Apache-2.0
"""Nova's services and Placement, run by Nova's own functional-test base."""

from __future__ import annotations

import logging
import pathlib
import uuid
from typing import TYPE_CHECKING, Any

import fixtures
from futurist._thread import ThreadWorker
from nova import conf as nova_conf
from nova.api.validation.extra_specs import validators
from nova.tests.functional.libvirt.base import ServersTestBase

from tests.cloud.cells import Cells
from tests.cloud.connections import Connections
from tests.cloud.executors import Executors
from tests.cloud.hosts import HostConf
from tests.cloud.once import Statements
from tests.cloud.ports import let_threads_share
from tests.hypervisor.pretences import HARDWARE

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.cloud.hosts import HostSettings, Options


class Services(ServersTestBase):
    """API, conductor, scheduler and computes of one in-process cloud.

    Nova offers them as a test case only.  It is set up like one and never
    run; what it has to undo belongs to the fixture that owns it.

    :param owner: the fixture whose clean-up ends the services
    :param options: {(group or None, option): value} for nova.conf
    :param cells: how many cells there are for computes
    """

    ADMIN_API = True
    microversion = "latest"
    # An RPC cast answers at once, as it does outside of Nova's tests: so the
    # API must not see what the conductor or a compute says later.
    CAST_AS_CALL = False

    def __init__(
        self, owner: fixtures.Fixture, options: Options, cells: int = 1
    ) -> None:
        super().__init__("runTest")
        # As Nova's test case calls it
        self.NUMBER_OF_CELLS = cells
        self._owner = owner
        self._options = options
        # Nova's fixtures tell the threads of one test from those of the next
        # by it.
        self._id = f"{type(self).__module__}.{uuid.uuid4()}"

    def runTest(self) -> None:  # noqa: N802
        """Do nothing: unittest wants a method to exist."""

    def id(self) -> str:
        """Return a name that no other cloud of this process has."""
        return self._id

    def addCleanup(  # noqa: N802
        self, function: Callable[..., Any], /, *args: Any, **kwargs: Any
    ) -> None:
        """Let the owner undo it."""
        self._owner.addCleanup(function, *args, **kwargs)

    def _setup_cells(self) -> None:
        self.cells = Cells()
        with fixtures.MonkeyPatch(
            "nova.tests.fixtures.CellDatabases", lambda: self.cells
        ):
            super()._setup_cells()

    def _setup_services(self) -> None:
        # Nova's fixture has every debug line formatted and thrown away, which
        # is a good part of all the work.
        logging.getLogger().setLevel(logging.INFO)
        for (group, name), value in self._options.items():
            self.flags(**{name: value}, group=group)
        # nova-api asks once, when it starts, and knows this cloud's policy then.
        validators.load_validators()
        self.host_conf = self.useFixture(HostConf())
        super()._setup_services()

    def start(self) -> None:
        """Start everything but the computes."""
        for fixture in (Connections, Statements, Executors):
            self.useFixture(fixture())
        # Nova's would end the tests that this is made for, and this one is none.
        with fixtures.EnvironmentVariable("OS_TEST_TIMEOUT"):
            self.setUp()
        # How often idle threads wake up.  As Nova's tests have it, each 0.01 s, they
        # take a quarter of the CPU time; an executor's shutdown waits that long.
        ThreadWorker.MAX_IDLE_FOR = 0.03
        let_threads_share(self.neutron)
        # In place of Nova's own fixtures, which give all hosts 16 CPUs and 10 GB.
        for owner, name, value in HARDWARE:
            self.useFixture(fixtures.MockPatchObject(owner, name, value))

    def start_host(self, name: str, settings: HostSettings, connection: Any) -> None:
        """Start a compute with these HostSettings over a pretended libvirt."""
        self.host_conf.starting(name, settings)
        # The compute reads it as it starts.
        before = nova_conf.CONF.compute.provider_config_location
        if settings.provider_yaml is not None:
            directory = self.useFixture(fixtures.TempDir()).path
            provider = pathlib.Path(directory) / "provider.yaml"
            provider.write_text(settings.provider_yaml, encoding="utf-8")
            self.flags(provider_config_location=directory, group="compute")
        try:
            self.start_compute(
                hostname=name, connection=connection, cell_name=settings.cell
            )
        finally:
            self.flags(provider_config_location=before, group="compute")
