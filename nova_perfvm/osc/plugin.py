# SPDX-License-Identifier: Apache-2.0
"""The plugin module of this extension of the openstack client.

Every call of the client imports this module, whatever the command: therefore it
imports no module that loads slowly.
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
    """Return the cloud's API for the commands.

    :param instance: the client manager, which has the SDK's connection
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
