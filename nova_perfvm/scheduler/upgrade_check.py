# SPDX-License-Identifier: Apache-2.0
"""``nova-perfvm-status upgrade check``: whether Nova still fits this package.

Run it on a controller, with its nova.conf, before and after an upgrade of Nova or of
this package.  The check reads only the installed Nova and its configuration.
"""

from __future__ import annotations

import importlib.metadata
import sys
from collections.abc import Iterable, Iterator
from typing import Final

from nova import conf as nova_conf
from nova import exception
from nova.scheduler import filters
from oslo_upgradecheck import upgradecheck
from oslo_upgradecheck.upgradecheck import Code, Result
from packaging.version import Version

from nova_perfvm import conf
from nova_perfvm import findings as codes
from nova_perfvm.documents.mistakes import DocumentError
from nova_perfvm.findings import Finding, Level, worst
from nova_perfvm.generate import options
from nova_perfvm.known_bugs import (
    KnownBug,
    Release,
    ReleaseError,
    all_bugs,
    known_release,
)
from nova_perfvm.placement.host_schemes import host_scheme_of
from nova_perfvm.placement.settings import (
    FALLBACK_QUERY,
    ISOLATED_AGGREGATES,
    NUMA_PACKING,
    PIN_SET,
)
from nova_perfvm.policy import Policy, advice, loader
from nova_perfvm.printable import first_line
from nova_perfvm.rules import enabled_filters
from nova_perfvm.scheduler import nova_fixes, nova_internals, numa_filter

_CODES: Final = {
    Level.UNKNOWN: Code.WARNING,
    Level.WARNING: Code.WARNING,
    Level.FAILURE: Code.FAILURE,
}

# For each option that a scheme needs: the codes for a wrong value, and for a Nova
# without the option.
_OF_OPTIONS: Final = {
    FALLBACK_QUERY.option: (codes.FALLBACK_QUERY, codes.FALLBACK_GONE),
    ISOLATED_AGGREGATES.option: (codes.ISOLATION, codes.ISOLATION),
    NUMA_PACKING.option: (codes.NUMA_PACKING, codes.NUMA_PACKING),
    PIN_SET.option: (codes.PIN_SET, codes.PIN_SET),
}
# CVE-2026-46448 (OSSA-2026-022)
HINTS_TAKEN: Final = 2151252


def installed_bugs(installed: str) -> tuple[Release, tuple[KnownBug, ...]]:
    """Return the release of the installed Nova, and its known bugs.

    A fix in Nova's source counts, whatever the version.  For a git checkout, whose
    version names no release, the source alone decides.

    :raises ReleaseError: the version has no number of a release
    """
    release, is_git = Release.parse(installed), Version(installed).is_prerelease
    found = []
    for bug in all_bugs():
        shown = nova_fixes.has_fix(bug.number)
        if bug.affects(release, mended=shown if shown or is_git else None):
            found.append(bug)
    return release, tuple(found)


def _policy() -> Policy | None:
    try:
        return loader.load(conf.policy_file(nova_conf.CONF))
    except DocumentError:
        return None


def _result(found: Iterable[Finding]) -> Result:
    """Return the result of a check: findings that the policy accepts become notes."""
    policy = _policy()
    judged = [one.judged_with(policy.accept if policy else ()) for one in found]
    details = "; ".join(
        f"{one.code}: {one.observed}" + (f"; {one.remedy}" if one.remedy else "")
        for one in judged
    )
    return Result(_CODES.get(worst(judged), Code.SUCCESS), details or None)


class Checks(upgradecheck.UpgradeCommands):  # type: ignore[misc]
    """The checks of ``nova-perfvm-status upgrade check``."""

    def check_policy(self) -> Result:
        """Check that nova-scheduler would start with the policy file."""
        try:
            path = conf.policy_file(nova_conf.CONF)
            policy = loader.load(path)
        except DocumentError as exc:
            return Result(Code.FAILURE, str(exc))
        found = _result(advice(policy))
        # Operators compare it with the digest of their own copy.
        digest = f"{loader.title(path)}, SHA-256 {policy.digest}"
        return Result(found.code, "; ".join(filter(None, (digest, found.details))))

    def check_filters(self) -> Result:
        """Check that nova.conf loads and enables the filters, in the right order."""
        return _result(_filters())

    def check_mode(self) -> Result:
        """Check whether filter and weigher decide, or only observe ([perfvm]mode)."""
        conf.register_opts(nova_conf.CONF)
        try:
            mode = nova_conf.CONF.perfvm.mode
        except ValueError as exc:
            return Result(Code.FAILURE, first_line(exc))
        return _result(options.judge_mode(mode))

    def check_rebuild_hint(self) -> Result:
        """Check whether users can make Nova skip the claim in Placement by a hint."""
        installed = importlib.metadata.version("nova")
        try:
            release, bugs = installed_bugs(installed)
        except ReleaseError as exc:
            return Result(Code.WARNING, f"not checked: {exc}")
        bug = next((bug for bug in bugs if bug.number == HINTS_TAKEN), None)
        if bug is None:
            return _result(())
        # A git checkout may lack the fix, and be newer than all releases with it.
        needed = min((fixed for fixed in bug.fixed if fixed >= release), default=None)
        remedy = (
            f"upgrade Nova to {needed}, or to a package of your distributor with that "
            "fix"
            if needed
            else "take a Nova with the fix of that bug"
        )
        words = (
            f"Nova {installed} takes the scheduler hint _nova_check_type from users "
            "(CVE-2026-46448) and then claims nothing in Placement for their server. "
            "PerfVMFilter refuses such requests on the policy's hosts, other hosts "
            f"take them: {remedy}"
        )
        return _result([_of_nova(codes.HINTS_TAKEN, words)])

    def check_known_bugs(self) -> Result:
        """List the known bugs of this Nova, and the command that finds affected VMs."""
        installed = importlib.metadata.version("nova")
        try:
            release, bugs = installed_bugs(installed)
            # known-bugs refuses releases that are not known yet.
            known_release(str(release))
        except ReleaseError as exc:
            return Result(Code.WARNING, f"not checked: {exc}")
        found = [f"{bug.name}: {bug.title}" for bug in bugs]
        if not found:
            return _result(())
        if Version(installed).is_prerelease:
            # A git checkout's version names no release, only the major one.
            release = Release(release.major)
        command = f"openstack perfvm known-bugs --to {release}"
        found.append(f"whom they hit, and what to do first: {command}")
        return Result(Code.SUCCESS, "; ".join(found))

    def check_settings(self) -> Result:
        """Check the options of nova.conf that the policy's placement scheme needs."""
        policy = _policy()
        if policy is None:
            return Result(Code.WARNING, "not checked: the policy cannot be read")
        return _result(_settings(policy))

    def check_internals(self) -> Result:
        """Check that Nova's internal parts are as in the releases that were tested."""
        found = [
            f"{name} ({nova_internals.internals()[name].why})"
            for name in nova_internals.unknown()
        ]
        if not found:
            return _result(())
        return Result(
            Code.WARNING,
            f"Nova {importlib.metadata.version('nova')} differs from the releases that "
            f"nova_perfvm was tested with in {'; '.join(found)}: run the tests of "
            "nova_perfvm with this Nova, or take a release of nova_perfvm that knows "
            "it",
        )

    _upgrade_checks = (
        ("Policy", check_policy),
        ("Filters", check_filters),
        ("Mode", check_mode),
        ("Users' scheduler hints", check_rebuild_hint),
        ("Known bugs", check_known_bugs),
        ("Options of Nova", check_settings),
        ("Parts of Nova that are no API", check_internals),
    )


def _of_nova(code: str, words: str) -> Finding:
    """Return a finding about nova.conf, with the level of its code."""
    return Finding.of(code, "nova.conf", words)


def _filters() -> Iterator[Finding]:
    """Yield findings on the filters that nova.conf loads and enables.

    Also note if Nova's NUMATopologyFilter is unknown, so that ours saves no time.
    """
    group = nova_conf.CONF.filter_scheduler
    enabled = list(group.enabled_filters)
    yield from enabled_filters.judge(enabled, _policy())
    if words := _unavailable(enabled, group.available_filters):
        words = f"{options.AVAILABLE_FILTERS} {words}"
        yield _of_nova(codes.FILTERS_UNAVAILABLE, words)
    known = nova_internals.is_known(numa_filter.REPLACED)
    if enabled_filters.NUMA_FILTER in enabled and not known:
        yield _of_nova(
            codes.COSTLY_FILTER,
            f"the {enabled_filters.NOVAS_NUMA_FILTER} of this Nova is not the one that "
            f"{enabled_filters.NUMA_FILTER} replaces: it runs, and costs as much",
        )


def _unavailable(enabled: Iterable[str], available: Iterable[str]) -> str:
    """Return the fault of available_filters, such as a missing line; else empty."""
    handler = filters.HostFilterHandler()

    def names(lines: Iterable[str]) -> set[str]:
        return {cls.__name__ for cls in handler.get_matching_classes(lines)}

    try:
        sought = set(enabled) - names(available)
    except (ImportError, exception.ClassNotFound) as exc:
        return f"fails to load, and nova-scheduler does not start: {first_line(exc)}"
    lines = options.AVAILABLE_FILTERS.values
    missing = sorted(line for line in lines if sought & names([line]))
    return f"lacks {' and '.join(missing)}: add a line for each" if missing else ""


def _settings(policy: Policy) -> Iterator[Finding]:
    """Judge the scheme's options of nova.conf; this Nova may have dropped one.

    Under a scheme that enrolls, a wrong option other than NUMA packing is a failure.
    """
    hosts = host_scheme_of(policy)
    for setting in hosts.settings:
        conf_of = nova_conf.CONF
        if setting.section != "DEFAULT":
            conf_of = conf_of[setting.section]
        wrong, gone = _OF_OPTIONS[setting.option]
        if setting.option not in conf_of:
            if hosts.scheme.enrolls:
                words = f"this Nova has not got {setting} any more: {setting.why}"
                yield _of_nova(gone, words)
        elif setting.values and (fault := setting.fault(str(conf_of[setting.option]))):
            found = Finding.of(wrong, "nova.conf", fault, setting.remedy)
            # Any wrong option but NUMA packing keeps pinned VMs off elastic hosts.
            fails = hosts.scheme.enrolls and wrong != codes.NUMA_PACKING
            yield found._replace(level=Level.FAILURE) if fails else found


def main(argv: list[str] | None = None) -> int:
    """Run the checks and return the worst check's code as exit status."""
    code: int = upgradecheck.main(
        nova_conf.CONF,
        project="nova",
        upgrade_command=Checks(),
        argv=sys.argv[1:] if argv is None else argv,
    )
    return code
