# SPDX-License-Identifier: Apache-2.0
"""What the openstack client wants to know of this extension.

Every call of the client imports this, whatever the command: so it imports
nothing that takes time.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    import argparse

API_NAME: Final = "perfvm"
API_VERSION_OPTION: Final = "os_perfvm_api_version"
DEFAULT_API_VERSION: Final = "1"
API_VERSIONS: Final = {"1": "nova_perfvm.cloud.api.API"}


def make_client(instance: Any) -> Any:
    """Return the cloud as the commands use it.

    :param instance: the client manager, with the SDK's connection
    """
    from nova_perfvm.cloud.api import API  # noqa: PLC0415

    return API(instance.sdk_connection)


def build_option_parser(parser: argparse.ArgumentParser) -> argparse.ArgumentParser:
    """Add the option that the client derives from ``API_VERSION_OPTION``."""
    parser.add_argument(
        "--os-perfvm-api-version",
        metavar="<perfvm-api-version>",
        default=os.environ.get("OS_PERFVM_API_VERSION"),
        help="version of the perfvm commands, default: "
        f"{DEFAULT_API_VERSION} (Env: OS_PERFVM_API_VERSION)",
    )
    return parser
