# SPDX-License-Identifier: Apache-2.0
"""nova-compute has the options of ``host_options`` in the policy."""

from typing import Final

from nova_perfvm.documents import config_file
from nova_perfvm.findings import Level
from nova_perfvm.generate.host_options import wanted
from nova_perfvm.measure import nova_conf
from nova_perfvm.measure.checks.check import Seen, check_of
from nova_perfvm.measure.checks.host_subject import HostSubject
from nova_perfvm.measure.collect.collected import NotReadError
from nova_perfvm.placement.settings import is_true

_ENFORCED: Final = ("libvirt", "volume_enforce_multipath")


@check_of(
    108,
    "hypervisor.host_options",
    source=nova_conf.PATH,
    remedy="put the lines of nova-perfvm host config into the host's nova.conf, and "
    "restart nova-compute",
)
def host_options(host: HostSubject) -> Seen:
    """Options of nova-compute are what the policy asks for."""
    settings = () if host.policy is None else tuple(wanted(host.policy))
    if not settings:
        return
    if nova_conf.PATH not in host.collected.files:
        raise NotReadError(nova_conf.PATH, "it was not collected (--nova-conf)")
    try:
        found = config_file.settings_of(host.collected.files[nova_conf.PATH])
    except config_file.SettingsError as exc:
        raise NotReadError(nova_conf.PATH, str(exc)) from exc
    for setting in settings:
        value = found.get(setting.key)
        if value is None:
            yield Level.WARNING, setting.stated(value)
        else:
            # Another value is the operator's own choice.
            right = setting.fault(value) is None
            yield Level.OK if right else Level.NOTE, setting.stated(value)
    if is_true(found.get(_ENFORCED, "")):
        yield Level.NOTE, "[libvirt]volume_enforce_multipath needs multipathd"
