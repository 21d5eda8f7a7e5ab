# SPDX-License-Identifier: Apache-2.0
"""The microversions of requests and of generated commands."""

from typing import Final

# Since Ussuri: nova-api validates extra specs.  Includes a server's topology with its
# pins (2.78), flavors with extra specs (2.61, the openstack client's default) and a
# description (2.55), services by UUID (2.53), embedded flavors (2.47) and aggregates'
# UUIDs (2.41).
COMPUTE: Final = "2.86"
# Since 2024.1: lists of servers with the zone that each server is bound to.  For an
# older Nova, servers are listed with COMPUTE.
SERVERS: Final = "2.96"
# Since Newton: Nova finds out whether a live migration has to copy disks.
LIVE_MIGRATION: Final = "2.25"
# Since Newton and Queens: live (2.30) and cold migrations (2.56) to a named host, which
# nova-scheduler checks.
LIVE_TO_HOST: Final = "2.30"
COLD_TO_HOST: Final = "2.56"
# Since Xena: a provider's parent may be changed or removed (1.37); consumer generations
# (1.28); provider generations with aggregates (1.19) and with a new provider (1.20).
# Not 1.38, which requires the consumer type: Nova does not set consumer types.
PLACEMENT: Final = "1.37"
# Since Newton and Ocata: PUT creates resource classes (1.7) and traits (1.6).
PLACEMENT_NAMES: Final = "1.7"
