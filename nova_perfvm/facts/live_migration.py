# SPDX-License-Identifier: Apache-2.0
"""Keys of a flavor or image that prevent live migration.

nova.compute.api: ``reject_mem_enc_instances`` and ``reject_legacy_vtpm_live_migration``
(before Nova 33 ``reject_vtpm_instances``).  Secure boot and a watchdog are no obstacle.
"""

from typing import Final

from nova_perfvm.facts.prefilters import Keys

_SECURITY: Final = "hw:tpm_secret_security"


def obstacle(keys: Keys) -> str | None:
    """Return why Nova refuses to migrate a server with these keys live, or None."""
    if keys.on("hw:mem_encryption"):
        return "its memory is encrypted (hw:mem_encryption)"
    security = keys.specs.get(_SECURITY, "user")
    # Nova 34's API passes only servers with "host"; it refuses "deployment", too.
    if keys.either("hw:tpm_version") and security != "host":
        return f"its TPM is not for the host to read ({_SECURITY}={security})"
    return None
