# SPDX-License-Identifier: Apache-2.0
"""A mechanism driver of Neutron's ML2 that binds every port, without agents."""

from __future__ import annotations

from typing import Any

from neutron_lib import constants
from neutron_lib.api.definitions import portbindings
from neutron_lib.plugins.ml2 import api
from sqlalchemy import orm


class BindingDriver(api.MechanismDriver):  # type: ignore[misc]
    """Take every port for plugged, on whatever host."""

    def initialize(self) -> None:
        """Let SQLAlchemy relate Neutron's tables to each other now.

        It would with the first query. Listing ports names such a relation before
        its query: without this it fails, if it is what neutron-server is asked
        for first.
        """
        orm.configure_mappers()

    def bind_port(self, context: Any) -> None:
        """Bind the port to its first segment, and say that it is up."""
        for segment in context.segments_to_bind:
            context.set_binding(
                segment[api.ID],
                portbindings.VIF_TYPE_OVS,
                {
                    portbindings.CAP_PORT_FILTER: True,
                    portbindings.VIF_DETAILS_CONNECTIVITY: portbindings.CONNECTIVITY_L2,
                },
                status=constants.PORT_STATUS_ACTIVE,
            )
            return
