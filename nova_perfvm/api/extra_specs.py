# SPDX-License-Identifier: Apache-2.0
"""Validators for ``openstack flavor set --property perfvm:...``.

nova-api loads this module as an entry point in ``nova.api.extra_spec_validators``, and
calls :func:`register` once, when it starts.  From then on nova-api refuses every key
of the namespace without a validator (microversion 2.86 and later).
"""

from __future__ import annotations

from typing import Any

import nova.conf
from nova import exception
from nova.api.validation.extra_specs import base
from oslo_log import log as logging

from nova_perfvm import conf
from nova_perfvm import constants as const
from nova_perfvm.policy import loader

LOG = logging.getLogger(__name__)


class RefusingValidator(base.ExtraSpecValidator):
    """A validator that refuses every key of the namespace.

    Its ``description`` is the reason, which the answer to the request contains.
    """

    def validate(self, name: str, value: str) -> None:
        """Refuse the key.

        :raises nova.exception.ValidationError: always
        """
        raise exception.ValidationError(
            f"Validation failed; {name}={value} is refused because nova-api has no "
            f"valid policy of VM classes: {self.description}"
        )


def register() -> list[base.ExtraSpecValidator]:
    """Return the validators for ``perfvm:*``; never raise.

    An exception here would keep nova-api from answering any request, and without a
    validator every mistake would pass.  So without a valid policy the only validator
    refuses every key.
    """
    try:
        return validators(conf.policy_file(nova.conf.CONF))
    except Exception as exc:  # noqa: BLE001  nova-api must start after any error
        LOG.error(  # noqa: TRY400  a list of mistakes needs no traceback
            "Every perfvm: extra spec is refused until nova-api is restarted with a "
            "valid policy: %s",
            exc,
        )
        return [refusal(str(exc))]


def validators(policy_file: str | None) -> list[base.ExtraSpecValidator]:
    """Return the validator of ``perfvm:class`` for the policy's classes.

    :param policy_file: path of the policy; None for the built-in policy
    :raises DocumentError: with every mistake of the file
    """
    policy = loader.load(policy_file)
    LOG.info(
        "Extra spec %s is validated by %s, SHA-256 %s",
        const.CLASS_KEY,
        policy_file or loader.BUILT_IN,
        policy.digest,
    )
    value: dict[str, Any] = {
        "type": str,
        "description": "A class that the policy declares.",
        "enum": [vm_class.name for vm_class in policy.classes],
    }
    return [
        base.ExtraSpecValidator(
            name=const.CLASS_KEY,
            description=(
                "The class of the flavor's VMs. The class decides the number of vCPUs, "
                "whether they are pinned, and which other VMs may be on the same host."
            ),
            value=value,
        )
    ]


def refusal(reason: str) -> base.ExtraSpecValidator:
    """Return a validator that refuses every key of the namespace for a reason."""
    return RefusingValidator(
        name=f"{const.NAMESPACE}:{{key}}",
        description=reason,
        value={"type": str, "description": "Nothing, at present."},
        parameters=[{"name": "key", "pattern": ".*"}],
    )
