# SPDX-License-Identifier: Apache-2.0
"""Who runs the commands that the documentation shows, and which nobody runs.

Here is where a new page, or a new command, is to be added.  The tests that are named
in RUN get their commands from here, by ``of``, and run them as they are shown;
tests/unit/test_documented.py looks that no command of any page is left out.
"""

from typing import NamedTuple

from tests import shown

_ADMIN, _USER, _CONTRIBUTOR = (
    f"doc/source/{name}" for name in ("admin", "user", "contributor")
)
_BENCH = "tests.measure.test_documented.DocumentedTest"
_FLEET = "tests.measure.test_fleet"
_CLOUD = "tests.functional.test_documented.TestDocumented"
_OFFLINE = "tests.unit.osc.test_documented.OfflineTest"
_PACKAGE = "tests.package.test_package.PackageTest"
_PROVE = "tests.sandbox.test_prove.ProveTest"
_SLOTS = "tests.sandbox.test_slots.SlotsTest"
_COMMANDS = f"{_SLOTS}.test_commands_of_the_documentation"
_DEVSTACK_TESTS = "tests.contract.test_plugin.EnrollLaterTest"
_ENROLL = "/opt/stack/nova-perfvm/devstack/enroll-hosts.sh"
_ELASTIC = "tests.sandbox.test_elastic.ElasticTest"
_UNINSTALL = "tests.long.test_uninstall.TestUninstall"
_UPGRADE = "tests.unit.scheduler.test_upgrade_check.ProgramTest.test_it_reads_nova_conf"

# {page: {beginning of a command: the test that runs it}}.  The longest beginning
# holds; the empty one is of all commands of the page.
RUN = {
    f"{_ADMIN}/audit.rst": {
        "": _COMMANDS,
        "nova-perfvm audit --snapshot cloud.json --collected": f"{_OFFLINE}.test_audit",
        "openstack perfvm server check": "tests.functional.test_server_check"
        ".TestServerCheck.test_documented_commands",
        "openstack perfvm audit --policy perfvm.yaml --heal": "tests.functional"
        ".test_lost_allocations.TestNone.test_commands_of_the_documentation",
    },
    f"{_ADMIN}/benchmarks.rst": {
        "": f"{_BENCH}.test_benchmarks",
        "nova-perfvm bench compare host.json": f"{_BENCH}.test_comparisons",
        "nova-perfvm bench compare run.json --target": f"{_BENCH}.test_comparisons",
        "cp inventory.example.yml": f"{_FLEET}.HereTest.test_the_example",
        "ansible-playbook": f"{_FLEET}.PlaybookTest.test_a_fleet",
        "ansible-playbook -i inventory.yml fleet.yml -e perfvm_results": f"{_FLEET}"
        ".HereTest.test_results_elsewhere",
    },
    f"{_ADMIN}/brownfield.rst": {"": f"{_SLOTS}.test_a_running_cloud_is_taken_in"},
    f"{_ADMIN}/cells.rst": {
        "": "tests.functional.test_cells_align.TestAlign"
        ".test_commands_of_the_documentation",
    },
    f"{_ADMIN}/collect.rst": {"": f"{_BENCH}.test_collect"},
    f"{_ADMIN}/deploy.rst": {"": f"{_OFFLINE}.test_hosts"},
    f"{_ADMIN}/disk-consolidation.rst": {"": f"{_BENCH}.test_disk_consolidation"},
    f"{_ADMIN}/elastic.rst": {"": f"{_ELASTIC}.test_commands_of_the_documentation"},
    f"{_ADMIN}/explain.rst": {
        "": _COMMANDS,
        "nova-perfvm": f"{_OFFLINE}.test_explain",
    },
    f"{_ADMIN}/filter.rst": {
        "": f"{_CLOUD}.test_aggregates_and_traits",
        "openstack perfvm": "tests.functional.test_odd_hosts.TestOddHost"
        ".test_other_hosts_go_on",
    },
    f"{_ADMIN}/guest-checks.rst": {"": f"{_BENCH}.test_guest_checks"},
    f"{_ADMIN}/host-checks.rst": {"": f"{_BENCH}.test_host_checks"},
    f"{_ADMIN}/host-modes.rst": {
        "": f"{_OFFLINE}.test_hosts",
        "openstack --os-placement-api-version": f"{_CLOUD}.test_aggregates_and_traits",
    },
    f"{_ADMIN}/host-playbook.rst": {"": f"{_OFFLINE}.test_hosts"},
    f"{_ADMIN}/install.rst": {
        "openstack aggregate": f"{_CLOUD}.test_aggregates_and_traits",
        "openstack perfvm": _COMMANDS,
        "nova-perfvm-status": _UPGRADE,
        "nova-perfvm host config": f"{_OFFLINE}.test_hosts",
        "cat out/": f"{_OFFLINE}.test_hosts",
        "install -D out/": f"{_OFFLINE}.test_hosts",
    },
    f"{_ADMIN}/known-bugs.rst": {"": f"{_OFFLINE}.test_known_bugs"},
    f"{_ADMIN}/limits.rst": {"": f"{_SLOTS}.test_limits_in_keystone"},
    f"{_ADMIN}/map.rst": {"": f"{_CLOUD}.test_pictures"},
    f"{_ADMIN}/monitoring.rst": {
        "": f"{_CLOUD}.test_pictures",
        "python3 -c": f"{_PACKAGE}.test_files_of_monitoring_are_where_their_page_says",
    },
    f"{_ADMIN}/plans.rst": {
        "": f"{_CLOUD}.test_plans",
        "nova-perfvm": f"{_OFFLINE}.test_plans",
        "nova-perfvm plan what-if": f"{_OFFLINE}.test_what_if",
    },
    f"{_ADMIN}/policy.rst": {
        "": _COMMANDS,
        "nova-perfvm policy diff": f"{_OFFLINE}.test_policies",
    },
    f"{_ADMIN}/prove.rst": {
        "": f"{_PROVE}.test_from_policy_to_proof",
        "openstack perfvm prove": f"{_PROVE}.test_a_proof",
    },
    f"{_ADMIN}/sizing.rst": {"": f"{_OFFLINE}.test_sizing"},
    f"{_ADMIN}/survey.rst": {
        "": f"{_CLOUD}.test_pictures",
        "nova-perfvm survey --collected": f"{_OFFLINE}.test_survey",
    },
    f"{_ADMIN}/turn-off.rst": {
        "printf": "tests.functional.test_scheduler_process.NovaSchedulerTest"
        ".test_sighup_turns_the_filter_off_and_on",
        "openstack": _COMMANDS,
    },
    f"{_ADMIN}/uninstall.rst": {
        "": f"{_UNINSTALL}.test_units",
        "openstack --os-placement-api-version 1.6 resource": f"{_UNINSTALL}.test_slots",
    },
    f"{_ADMIN}/upgrade.rst": {
        "": _COMMANDS,
        "nova-perfvm policy check": f"{_OFFLINE}.test_policies",
        "nova-perfvm-status": _UPGRADE,
    },
    f"{_ADMIN}/weigher.rst": {"": f"{_CLOUD}.test_aggregates_and_traits"},
    f"{_CONTRIBUTOR}/devstack.rst": {
        "/opt/stack/data/venv/bin/nova-perfvm-status": _UPGRADE,
        f"{_ENROLL} ": f"{_DEVSTACK_TESTS}.test_it_enrolls",
    },
    f"{_CONTRIBUTOR}/tempest.rst": {
        "nova-perfvm": f"{_OFFLINE}.test_policies",
        "tempest list-plugins": "tests.unit.tempest_plugin.test_plugin"
        ".LoadedTest.test_tempest_lists_it",
    },
    f"{_USER}/flavors.rst": {
        "nova-perfvm": f"{_OFFLINE}.test_flavors",
        "nova-perfvm flavor generate | sh": _COMMANDS,
        "openstack perfvm": _COMMANDS,
    },
    f"{_USER}/grow.rst": {"": "tests.sandbox.test_grow.GrowTest.test_a_pool_grows"},
    f"{_USER}/sandbox.rst": {
        "": f"{_SLOTS}.test_the_client_and_the_generated_commands"
    },
    f"{_USER}/tutorial.rst": {"": f"{_ELASTIC}.test_the_tutorial"},
}


class NotRun(NamedTuple):
    """Commands that no test runs as they are shown.

    :ivar command: their beginning
    :ivar why: the reason; and what tests do instead, if anything
    :ivar page: the page, empty for all pages
    """

    command: str
    why: str
    page: str = ""


_DEVSTACK = "it needs a machine for DevStack; tests/contract has doubles of its parts"
_EXAMPLE = "it runs tests again; tests/unit/test_documentation.py looks for these"
_HERE = "the sandbox of the tests is up already"
_HOURS = "hours; make test-long has other sizes"
TARGET = "a target of make, which .ci/run runs"

# What is of one of these is not run, whatever RUN says of its page.
NOT_RUN = (
    NotRun("apt-get install", "it changes the machine; .ci/run installs the same"),
    NotRun("sudo apt-get install", "it changes the machine; .ci/run installs the same"),
    NotRun("systemctl kill", "it needs systemd; tests send the signal"),
    NotRun("openstack optimize", "it needs Watcher's API; make watcher has the rest"),
    # Of long runs
    NotRun("python -m tests.benchmark.coverage", "minutes; make benchmark"),
    NotRun(
        "python -m tests.benchmark.large_cloud",
        "minutes; tests/unit/benchmark/test_large_cloud.py has fewer hosts",
    ),
    NotRun("python -m tests.benchmark.proof", "minutes; make benchmark"),
    NotRun("python -m tests.benchmark.slots_left", "minutes; make benchmark"),
    NotRun(
        "python -m tests.benchmark.plan_gap",
        "minutes; tests/unit/benchmark/test_plan_gap.py has fewer clouds",
    ),
    NotRun(
        "python -m tests.benchmark.migration_forecast",
        "20 minutes; tests/long/test_migration_forecast.py",
    ),
    NotRun("python -m tests.benchmark.dry_run_cost", "minutes; make benchmark"),
    NotRun(
        "python -m tests.benchmark.guest_topology",
        "8 minutes; tests/guest/test_guest_topology.py has fewer wake-ups",
    ),
    NotRun("python -m tests.benchmark.overgranting", "hours; make overgranting"),
    NotRun("PBR_VERSION=0.1.0 python -m build", "tests/package builds an archive so"),
    NotRun(
        "make savings", "minutes; tests/unit/benchmark/test_savings.py has fewer VMs"
    ),
    NotRun("make mutants", "half an hour; tests/unit/test_mutants.py plants some"),
    NotRun(
        "make scheduling-cost",
        "half an hour; tests/measure/test_scheduling.py has a part",
    ),
    NotRun(
        "PERFVM_DRAWN_VERDICTS=",
        "minutes; tests/functional/test_drawn.py has fewer verdicts",
    ),
    NotRun("PERFVM_NUMA_REQUESTS=", "minutes; make unit has fewer requests"),
    NotRun("PERFVM_SANDBOX_STORM=", _HOURS),
    NotRun("PERFVM_REFUSALS=", _HOURS),
    NotRun(
        "openstack perfvm limit sync --policy perfvm.yaml --default "
        "high-performance=0 --default general",
        "it is for units; tests/functional/test_limits.py sets such limits there",
    ),
    NotRun("make test-long", "an hour a shard; tests/unit/test_shards.py divides"),
    NotRun("make matrix", "hours; tests/functional/test_matrix.py has a few rows"),
    NotRun(".venv/bin/python -m tests.shards", "tests/unit/test_shards.py calls it"),
    NotRun("tox -e nova-", "all suites on all releases: hours"),
    NotRun("python -m tests.releases", "it needs what tox has left of all releases"),
    # Of tests
    NotRun(".venv/bin/stestr", _EXAMPLE),
    NotRun(".venv/bin/python -c", "it lists checks, as many tests do"),
    NotRun("OS_NOVA_DISABLE_EVENTLET_PATCHING=1 .venv/bin/stestr", _EXAMPLE),
    NotRun("make demo", TARGET),
    NotRun("make lint unit", TARGET),
    NotRun("make test ", TARGET),
    NotRun("make tempest TEMPEST_ARGUMENTS=", ".ci/run has other arguments"),
    NotRun("make tempest", TARGET),
    NotRun(".venv/bin/python -m tests.tempest", "make tempest calls it"),
    NotRun("DEVSTACK_DIR=", "make contract without a real DevStack is in .ci/run"),
    # Of pages whose commands tests run from another page
    NotRun(
        "openstack volume type create",
        "it needs a Cinder; tests/sandbox/test_prove.py",
        f"{_ADMIN}/install.rst",
    ),
    NotRun(
        "openstack volume type create",
        "it needs a Cinder; tests/sandbox/test_prove.py",
        f"{_ADMIN}/nvme-tcp.rst",
    ),
    NotRun(
        "openstack perfvm image sync",
        "it changes the image of other tests; tests/sandbox/test_prove.py",
        f"{_ADMIN}/install.rst",
    ),
    NotRun(
        "openstack perfvm plan drain",
        "it moves servers of other tests; tests/functional/test_documented.py",
        f"{_ADMIN}/install.rst",
    ),
    NotRun(
        "openstack compute service set",
        "tests/sandbox/test_slots.py runs those of brownfield.rst",
        f"{_ADMIN}/install.rst",
    ),
    NotRun(
        "openstack --os-compute-api-version 2.67 server create",
        "it needs a Cinder; tests/sandbox/test_prove.py",
        f"{_ADMIN}/install.rst",
    ),
    NotRun(
        "openstack",
        "tests/sandbox/test_prove.py boots such a VM; "
        "tests/functional/test_server_check.py checks one",
        f"{_USER}/first-boot.rst",
    ),
    # Of other programs
    NotRun("kubectl ", "it needs a Kubernetes"),
    NotRun("kolla-build ", "it needs Docker; kolla-build --template-only was run"),
    NotRun("kolla-ansible ", "it needs hosts; tests/recipes/test_kolla.py runs roles"),
    NotRun("docker exec ", "it needs Kolla's containers"),
    NotRun("mtail ", "it runs for ever; tests/unit/scheduler/test_mtail.py ends"),
    NotRun("oc ", "it needs an OpenShift; tests/recipes/test_rhoso.py reads the file"),
    NotRun("cd fleet", "each test is in a directory of its own"),
    NotRun(
        "openstack server create --user-data",
        "the image has to run it; tests/guest runs the cure in a guest",
    ),
    # Of sandboxes
    NotRun("make sandbox", _HERE),
    NotRun(
        'eval "$(.venv/bin/python -m tests.sandbox openrc)"',
        "that of the tutorial is run",
        "doc/source/user/sandbox.rst",
    ),
    NotRun(
        ".venv/bin/python -m tests.sandbox wipe",
        "the sandbox is that of other tests, too",
    ),
    # Of Tempest and DevStack
    NotRun("tempest run", "python -m tests.tempest does it, in .ci/run"),
    *(
        NotRun(command, _DEVSTACK, f"{_CONTRIBUTOR}/devstack.rst")
        for command in (
            *("sudo ", "echo ", "git clone ", "source ", "cd ", "tox -e "),
            *("openstack perfvm preflight ", "openstack server ", "~/devstack/"),
        )
    ),
)


def why_not(page, text):
    """Return why no test runs a command of a page; None if a test does."""
    found = [
        exception.why
        for exception in NOT_RUN
        if text.startswith(exception.command) and exception.page in {"", page}
    ]
    return found[0] if found else None


def claim(command):
    """Return the beginning in RUN that a command is of; None if there is none."""
    beginnings = [
        beginning
        for beginning in RUN.get(command.page, ())
        if command.text.startswith(beginning)
    ]
    return max(beginnings, key=len, default=None)


def runner(command):
    """Return the test that runs a command; None for one that no test runs."""
    beginning = claim(command)
    if beginning is None or why_not(command.page, command.text):
        return None
    return RUN[command.page][beginning]


def of(test):
    """Return the commands that a test has to run, in the order of RUN and its pages."""
    return [
        command
        for page in RUN
        for command in shown.commands(page)
        if runner(command) == test.id()
    ]
