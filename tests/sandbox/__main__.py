# SPDX-License-Identifier: Apache-2.0
"""A real OpenStack of separate processes, on pretended hosts.

python -m tests.sandbox up --hosts 2xdedicated:2x20,1xshared:2x20
eval "$(python -m tests.sandbox openrc)"
python -m tests.sandbox wipe
"""

import argparse
import pathlib
import shlex
import sys
import time

from nova_perfvm.exceptions import PerfVMError
from nova_perfvm.generate.hosts import remarks
from tests.processes.content import IMAGE, NETWORK
from tests.processes.errors import SandboxError
from tests.processes.hostspec import DEFAULT_HOSTS
from tests.processes.sandbox import Sandbox

_ROOT = pathlib.Path(__file__).parents[2]
# OS_AUTH_URL and others of another cloud would win over OS_CLOUD; which ones do
# depends on the authentication plugins that the client has.  zsh wants one name at
# least; the semicolon is for an eval without quotes, which joins the lines.
_FORGET = r"unset OS_CLOUD $(env | sed -n 's/^\(OS_[A-Za-z0-9_]*\)=.*/\1/p');" "\n"


def main(arguments=None):
    """Run a command; return the exit status.

    :param arguments: of the command line; None for this program's
    """
    wanted = _parser().parse_args(arguments)
    began = time.monotonic()

    def tell(text):
        sys.stderr.write(f"[{time.monotonic() - began:6.1f} s] {text}\n")

    try:
        sandbox = Sandbox(wanted.directory, environment=wanted.environment, tell=tell)
        return wanted.command(sandbox, wanted) or 0
    except PerfVMError as error:
        sys.stderr.write(f"{error}\n")
        return 1
    except KeyboardInterrupt:
        sys.stderr.write("interrupted\n")
        return 130


def up(sandbox, wanted):
    """Start the sandbox, and say how to use it."""
    if wanted.add is not None:
        _add(sandbox, wanted)
        return
    sandbox.up(wanted.hosts, wanted.policy, volumes=wanted.volumes)
    openrc = [sys.executable, "-m", "tests.sandbox", "openrc"]
    for option in ("directory", "environment"):
        if value := getattr(wanted, option):
            openrc += [f"--{option}", str(pathlib.Path(value).absolute())]
    where = "" if pathlib.Path.cwd() == _ROOT else f"cd {shlex.quote(str(_ROOT))}; "
    sys.stdout.write(
        f"The sandbox is up. In a shell:\n"
        f'  eval "$({where}{shlex.join(openrc)})"\n'
        f"  openstack server create --flavor FLAVOR --image {IMAGE} "
        f"--network {NETWORK} NAME\n"
        f"Flavors: openstack flavor list. Logs: {sandbox.layout.logs}\n"
    )


def _add(sandbox, wanted):
    if wanted.hosts or wanted.policy or wanted.volumes:
        raise SandboxError(
            "--add is for the sandbox as it is: leave --hosts, --policy and "
            "--volumes out"
        )
    for name, config in sandbox.add(wanted.add).items():
        then = remarks.enrolling(config, name)
        sys.stdout.write(f"{name} is up. {then}".rstrip() + "\n")


def status(sandbox, wanted):
    """Print each process; return 1 if one that was started is dead."""
    sandbox.settings  # noqa: B018 - raises where there is no sandbox
    found = sandbox.status()
    for one in found:
        state = "running" if one.alive else "dead"
        sys.stdout.write(f"{one.name:32}{one.pid:>8}{one.port or '':>7}  {state}\n")
    return int(not all(one.alive for one in found))


def restart(sandbox, wanted):
    """Restart processes, which read their files again."""
    sandbox.restart(wanted.services)


def down(sandbox, wanted):
    """Stop every process; data and logs stay."""
    sandbox.down()


def wipe(sandbox, wanted):
    """Stop the sandbox and remove everything that it has made."""
    sandbox.wipe()


def openrc(sandbox, wanted):
    """Print shell lines after which the openstack client uses the sandbox."""
    exports = sandbox.exports()
    sys.stdout.write(_FORGET)
    for name, value in exports.items():
        added = ':"$PATH"' if name == "PATH" else ""
        sys.stdout.write(f"export {name}={shlex.quote(value)}{added}\n")


def _parser():
    parser = argparse.ArgumentParser(
        prog="python -m tests.sandbox",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    commands = parser.add_subparsers(required=True, metavar="COMMAND")
    found = {}
    for command in (up, status, restart, down, wipe, openrc):
        purpose = command.__doc__.partition("\n")[0]
        one = commands.add_parser(command.__name__, help=purpose, description=purpose)
        one.set_defaults(command=command)
        one.add_argument(
            "--directory",
            metavar="DIR",
            help="state directory (default: nova_perfvm/sandbox in $XDG_CACHE_HOME, "
            "without that in ~/.cache)",
        )
        one.add_argument(
            "--environment",
            metavar="DIR",
            help="virtual environment of OpenStack, made if it is missing, for several "
            "sandboxes to share (default: venv in the state directory)",
        )
        found[command] = one
    found[up].add_argument(
        "--hosts",
        metavar="SPEC",
        help="[COUNTx]MODE:SHAPE[@CLASS], several joined by commas: "
        "3xdedicated:2x20,1xelastic:2x20x2; CLASS only where the policy has several "
        f"pinned ones (default: those of the last time, else {DEFAULT_HOSTS})",
    )
    found[up].add_argument(
        "--policy",
        metavar="FILE",
        help="policy file (default: the built-in policy, fitted to the hosts and, "
        "unless --volumes is given, to a cloud without Cinder)",
    )
    found[up].add_argument(
        "--volumes", action="store_true", help="with Cinder; no volume takes any disk"
    )
    found[up].add_argument(
        "--add",
        metavar="N|SPEC",
        help="start more hosts in the sandbox that is up: as many like the first one, "
        "or others as in --hosts; they are not enrolled",
    )
    found[restart].add_argument(
        "services",
        nargs="+",
        metavar="SERVICE",
        help="name of a process, such as nova-compute-shared1: see status",
    )
    return parser


if __name__ == "__main__":
    sys.exit(main())
