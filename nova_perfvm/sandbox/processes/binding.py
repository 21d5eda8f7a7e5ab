# SPDX-License-Identifier: Apache-2.0
"""A mechanism driver of Neutron's ML2 that binds every port, without agents."""

from __future__ import annotations

from typing import Any

from neutron_lib import constants
from neutron_lib.api.definitions import portbindings
from neutron_lib.plugins.ml2 import api
from sqlalchemy import orm


class BindingDriver(api.MechanismDriver):  # type: ignore[misc]
    """A driver that binds every port on every host, and sets it ACTIVE."""

    def initialize(self) -> None:
        """Configure SQLAlchemy's mappers of Neutron's tables now.

        SQLAlchemy does so with the first query. But listing ports names a relation of
        the mappers before its query, and fails if it is neutron-server's first request.
        """
        orm.configure_mappers()

    def bind_port(self, context: Any) -> None:
        """Bind the port to its first segment, and set it ACTIVE."""
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
