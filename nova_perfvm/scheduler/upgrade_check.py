# SPDX-License-Identifier: Apache-2.0
"""``nova-perfvm-status upgrade check``: whether Nova still has what we rest on.

Run on a controller, with its nova.conf, before and after an upgrade of Nova or
of this package.  It starts nothing and asks no service.
"""

from __future__ import annotations

import importlib.metadata
import sys

from nova import conf as nova_conf
from oslo_upgradecheck import upgradecheck
from packaging.version import Version

from nova_perfvm import conf
from nova_perfvm.exceptions import PolicyError
from nova_perfvm.generate import options
from nova_perfvm.policy import Policy, advice, loader

# The first release of each series with Nova's fix of CVE-2026-46448
# (OSSA-2026-022).  No older series has it, every later one does.
_HINTS_DROPPED = ("31.3.1", "32.2.1", "33.0.2")


def release_that_drops_hints(installed: str) -> str | None:
    """Return the release of Nova that users' hints make necessary.

    None if the installed one has the fix already.
    """
    version = Version(installed)
    for release in _HINTS_DROPPED:
        if version.major <= Version(release).major:
            return release if version < Version(release) else None
    return None


class Checks(upgradecheck.UpgradeCommands):  # type: ignore[misc]
    """The checks, in the order of what rests on what."""

    def _result(self, code: upgradecheck.Code, details: str = "") -> object:
        return upgradecheck.Result(code, details or None)

    def _policy(self) -> Policy | None:
        try:
            return loader.load(conf.policy_file(nova_conf.CONF))
        except PolicyError:
            return None

    def check_policy(self) -> object:
        """Return whether nova-scheduler would start with the policy file."""
        try:
            policy = loader.load(conf.policy_file(nova_conf.CONF))
        except PolicyError as exc:
            return self._result(upgradecheck.Code.FAILURE, str(exc))
        said = advice(policy)
        if said:
            return self._result(
                upgradecheck.Code.WARNING, "; ".join(str(problem) for problem in said)
            )
        return self._result(upgradecheck.Code.SUCCESS)

    def check_filters(self) -> object:
        """Return whether nova.conf loads and enables the filter, in a good order."""
        group = nova_conf.CONF.filter_scheduler
        enabled = list(group.enabled_filters)
        available = options.AVAILABLE_FILTERS
        missing = set(available.values) - set(group.available_filters)
        if options.FILTER not in enabled:
            return self._result(
                upgradecheck.Code.WARNING,
                f"{options.FILTER} is not in {options.ENABLED_FILTERS}: only Placement "
                "enforces the policy",
            )
        if missing:
            return self._result(
                upgradecheck.Code.FAILURE,
                f"{available} lacks {' and '.join(sorted(missing))}: add a line for "
                "each",
            )
        behind = enabled[enabled.index(options.FILTER) :]
        if options.NUMA_FILTER not in behind:
            return self._result(
                upgradecheck.Code.WARNING,
                f"{options.ENABLED_FILTERS} needs {options.NUMA_FILTER} behind "
                f"{options.FILTER}",
            )
        return self._result(upgradecheck.Code.SUCCESS)

    def check_rebuild_hint(self) -> object:
        """Return whether a user can make Nova claim nothing for a server."""
        installed = importlib.metadata.version("nova")
        needed = release_that_drops_hints(installed)
        if needed is None:
            return self._result(upgradecheck.Code.SUCCESS)
        return self._result(
            upgradecheck.Code.FAILURE,
            f"Nova {installed} takes the scheduler hint _nova_check_type from users "
            "(CVE-2026-46448) and then claims nothing in Placement for their server. "
            "PerfVMFilter refuses such requests on the policy's hosts, other hosts "
            f"take them: upgrade Nova to {needed}, or to a package of your "
            "distributor with that fix",
        )

    def check_fallback_query(self) -> object:
        """Return whether pinned VMs reach the hosts that the policy means."""
        policy = self._policy()
        if policy is None:
            return self._result(
                upgradecheck.Code.WARNING, "not checked: the policy cannot be read"
            )
        setting = options.fallback_query(policy)
        if setting.option in nova_conf.CONF.workarounds:
            bad = policy.placement == "units"
            return self._compared(
                setting,
                upgradecheck.Code.FAILURE if bad else upgradecheck.Code.WARNING,
            )
        if policy.placement != "units":
            return self._result(upgradecheck.Code.SUCCESS)
        return self._result(
            upgradecheck.Code.FAILURE,
            f"this Nova has no {setting} any more: elastic hosts (placement: units) "
            "take no pinned VMs; move to placement: slots",
        )

    def _compared(self, setting: options.Setting, code: upgradecheck.Code) -> object:
        """Compare an option that this Nova has with what it should be."""
        fault = setting.fault(str(nova_conf.CONF[setting.section][setting.option]))
        if fault is None:
            return self._result(upgradecheck.Code.SUCCESS)
        return self._result(code, f"{fault}; {setting.remedy}")

    def check_isolated_aggregates(self) -> object:
        """Return whether VMs without units are kept off elastic hosts."""
        policy = self._policy()
        if policy is None or policy.placement != "units":
            return self._result(upgradecheck.Code.SUCCESS)
        return self._compared(options.ISOLATED_AGGREGATES, upgradecheck.Code.FAILURE)

    def check_pin_set(self) -> object:
        """Return whether housekeeping CPUs of elastic hosts can still be declared."""
        policy = self._policy()
        if policy is None or policy.placement != "units":
            return self._result(upgradecheck.Code.SUCCESS)
        if options.PIN_SET.option not in nova_conf.CONF:
            return self._result(
                upgradecheck.Code.WARNING,
                f"this Nova has no {options.PIN_SET} any more: elastic hosts cannot "
                "keep CPUs for themselves",
            )
        return self._result(upgradecheck.Code.SUCCESS)

    _upgrade_checks = (
        ("Policy", check_policy),
        ("Filters", check_filters),
        ("Users' scheduler hints", check_rebuild_hint),
        ("Fallback query", check_fallback_query),
        ("Isolated aggregates", check_isolated_aggregates),
        (options.PIN_SET.option, check_pin_set),
    )


def main(argv: list[str] | None = None) -> int:
    """Run ``nova-perfvm-status``; the worst check's code is the exit code."""
    code: int = upgradecheck.main(
        nova_conf.CONF,
        project="nova",
        upgrade_command=Checks(),
        argv=sys.argv[1:] if argv is None else argv,
    )
    return code
