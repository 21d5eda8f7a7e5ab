# SPDX-License-Identifier: Apache-2.0
"""Every microversion in use, in requests as well as in generated commands."""

from typing import Final

# Since Ussuri.  From here on nova-api validates extra specs; the openstack client asks
# for 2.61 by itself.  Below that are a server's topology (2.78), which says whether it
# is pinned, flavors with extra specs (2.61) and a description (2.55), services by UUID
# (2.53), embedded flavors (2.47) and UUIDs of aggregates (2.41).
COMPUTE: Final = "2.86"
# Since 2024.1.  Servers, as they are read: with the zone that each is bound to.  Where
# Nova does not know it, they are read by the one above.
SERVERS: Final = "2.96"
# Since Newton.  Nova finds out whether a live migration has to copy disks.
LIVE_MIGRATION: Final = "2.25"
# Since Newton and Queens.  Live (2.30) and cold migrations (2.56) to a named host, of
# which nova-scheduler is asked whether it takes the server.
LIVE_TO_HOST: Final = "2.30"
COLD_TO_HOST: Final = "2.56"
# Since Zed.  A shelved server comes to a named host, which nova-scheduler checks.
UNSHELVE_TO_HOST: Final = "2.91"
# Since Xena.  A provider that has a parent may be given another one, or none (1.37);
# consumer generations (1.28), provider generations with aggregates (1.19) and with a
# new provider (1.20).  Not 1.38: it wants the type of a consumer, which Nova does not
# tell Placement.
PLACEMENT: Final = "1.37"
# Since Newton and Ocata.  A resource class is made by PUT (1.7), a trait too (1.6).
PLACEMENT_NAMES: Final = "1.7"
