# SPDX-License-Identifier: Apache-2.0
"""Tempest on a sandbox: the plugin's tests, and Tempest's own of flavors.

    python -m tests.tempest [--directory DIR] [--environment DIR]
                            [--scheme SCHEME | --hosts SPEC]
                            [--list] [--store] [REGEX]

A sandbox that is up in the directory is used and left as it is; otherwise one is
started, and wiped in the end.  Fails also when a test of the plugin was skipped,
unless what it tests is not what the sandbox's policy wants; reasons are printed.
With --list the tests are only listed, and no sandbox is needed; with --store the
results also go into the stestr repository of the current directory.
"""

import argparse
import contextlib
import pathlib
import subprocess
import sys
import tempfile

import tempest
from stestr.repository import util

from tests import count
from tests.processes.layout import default_directory
from tests.processes.sandbox import Sandbox
from tests.tempest.conf import sandbox_conf

# Migrations need two hosts for either class.  A policy is the built-in one, if there
# is no file of that scheme here.
SCHEMES = {
    "units": "2xelastic:2x20",
    "slots": "2xdedicated:2x20,2xshared:2x20",
    "mixed": "2xmixed:2x20",
    "cells": "2xdedicated:2x20,2xshared:2x20",
}
PLUGIN = "nova_perfvm.tempest_plugin."
# How the plugin begins to say that a test is of another policy than the cloud's.
OTHER_POLICY = ("[perfvm]placement is ", "[perfvm]exclusive is ")
# And of what a sandbox has not: nobody plugs its networks.
NOT_THERE = ("[auth]create_isolated_networks is ",)
REGEX = (
    r"^nova_perfvm\.tempest_plugin\.|"
    r"^tempest\.api\.compute\.(admin|flavors)\.test_flavors"
)
PROGRAMS = pathlib.Path(sys.executable).parent


def main():
    """Start what is needed, run the tests, print the totals."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--directory", type=pathlib.Path)
    parser.add_argument("--environment", type=pathlib.Path)
    what = parser.add_mutually_exclusive_group()
    what.add_argument("--scheme", choices=SCHEMES, default="units")
    what.add_argument("--hosts")
    parser.add_argument("--list", action="store_true")
    parser.add_argument("--store", action="store_true")
    parser.add_argument("regex", nargs="?", default=REGEX)
    wanted = parser.parse_args()
    if wanted.list:
        with tempfile.TemporaryDirectory() as workspace:
            prepare(pathlib.Path(workspace))
            subprocess.run([PROGRAMS / "stestr", "init"], check=True, cwd=workspace)
            return subprocess.run(
                [PROGRAMS / "stestr", "list", wanted.regex], check=False, cwd=workspace
            ).returncode
    with contextlib.ExitStack() as stack:
        scratch = pathlib.Path(
            stack.enter_context(tempfile.TemporaryDirectory(prefix="perfvm-tempest-"))
        )
        sandbox = Sandbox(
            wanted.directory or scratch / "state",
            # That of `make sandbox`: it takes minutes to make.
            environment=wanted.environment or default_directory() / "venv",
            tell=lambda text: sys.stderr.write(f"{text}\n"),
        )
        if not any(record.alive for record in sandbox.status()):
            stack.callback(sandbox.wipe)
            policy = pathlib.Path(__file__).with_name(f"{wanted.scheme}.yaml")
            sandbox.up(
                wanted.hosts or SCHEMES[wanted.scheme],
                str(policy) if policy.exists() else None,
            )
        status = run(sandbox, scratch / "tempest", wanted.regex)
        if wanted.store:
            store(scratch / "tempest")
        return status


def prepare(workspace):
    """Make a directory in which stestr finds Tempest's tests."""
    package = pathlib.Path(tempest.__file__).parent
    (workspace / ".stestr.conf").write_text(
        f"[DEFAULT]\ntest_path={package / 'test_discover'}\ntop_dir={package.parent}\n"
    )


def store(workspace):
    """Copy the results of a workspace's last run into the project's repository."""
    stream = subprocess.run(
        [PROGRAMS / "stestr", "last", "--subunit"],
        check=True,
        stdout=subprocess.PIPE,
        cwd=workspace,
    ).stdout
    # Its exit status says whether tests failed, which is known.
    subprocess.run(
        [PROGRAMS / "stestr", "load", "--force-init"],
        check=False,
        input=stream,
        stdout=subprocess.DEVNULL,
    )


def run(sandbox, workspace, regex):
    """Run Tempest in a workspace; return the exit status."""
    workspace.mkdir()
    (workspace / "tempest.conf").write_text(sandbox_conf(sandbox, workspace))
    prepare(workspace)
    # One at a time: VMs of one class keep those of the other away.
    status = subprocess.run(
        [
            *(PROGRAMS / "tempest", "run", "--config-file", workspace / "tempest.conf"),
            *("--serial", "--regex", regex),
        ],
        check=False,
        cwd=workspace,
    ).returncode
    totals = count.read(util.get_repo_open(repo_url=str(workspace)).get_latest_run())
    told = ", ".join(f"{number} {how}" for how, number in totals.counts.items())
    sys.stdout.write(f"{told}\n")
    missed = list(not_tested(totals))
    sys.stdout.writelines(f"not tested: {line}\n" for line in missed)
    return status or int(bool(missed) or not totals.ended)


def not_tested(totals):
    """Return the plugin's tests that were skipped, and should not have been."""
    for name, state in totals.ended.items():
        reason = totals.reasons.get(name, "no reason given")
        if (
            state == "skip"
            and PLUGIN in name
            and not reason.startswith(OTHER_POLICY + NOT_THERE)
        ):
            yield f"{name}: {reason}"


if __name__ == "__main__":
    sys.exit(main())
