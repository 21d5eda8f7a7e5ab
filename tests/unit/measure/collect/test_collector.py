# SPDX-License-Identifier: Apache-2.0
"""The script that collects, run as on any machine, and on pretended ones."""

import ast
import contextlib
import errno
import io
import json
import os
import pathlib
import re
import shutil
import signal
import subprocess
import sys
import time

import fixtures
import testtools

from nova_perfvm.measure.collect import collector, reading
from tests.directory import DirectoryCase
from tests.unit.measure.prove import sound

SCRIPT = pathlib.Path(collector.__file__)
NOBODY = 65534
# What may be read: of processes and of /etc no more than this.
HARMLESS = (
    r"/(sys|proc/\D[^/]*)(/.*)?"
    r"|/proc/\d+/(task/\d+/)?(cmdline|comm|stat|status|cgroup|numa_maps|schedstat)"
    r"|/etc/(os-release|tuned/active_profile|nova/provider_config(/[^/]*\.yaml)?)"
)

UUID = "0f5a1c2e-1111-4222-8333-444455556666"
CHANNELS = "Channel parameters for eth0:\nCombined:\t20\n"
VIRSH = f"""\
echo "$LC_ALL" > "$0.locale"
case "$*" in
"-r list --all --uuid") printf '{UUID}\\n\\n--pool\\n' ;;
"-r dumpxml {UUID}") echo '<domain><uuid>{UUID}</uuid></domain>' ;;
"-r schedinfo {UUID}") echo 'Scheduler      : posix' ;;
"-r domstats --dirtyrate {UUID}") echo '  dirtyrate.calc_status=0' ;;
"-r capabilities") echo 'error: no connection' >&2; exit 1 ;;
*) echo "$*" > "$0.asked" ;;
esac"""
ETHTOOL = f"[ $1 = -l ] && printf '{CHANNELS}'"


def collect(*arguments, code=None, **options):
    """Run the script in a process of its own; return what it did."""
    with SCRIPT.open("rb") as script:
        return subprocess.run(
            [sys.executable, *(("-c", code) if code else ("-",)), *arguments],
            stdin=script,
            capture_output=True,
            check=False,
            **options,
        )


MODULE = "nova_perfvm.measure.collect.collector"


class SourceTest(testtools.TestCase):
    """What can be seen of it without a Python 3.6."""

    def test_it_needs_the_standard_library_only(self):
        text = SCRIPT.read_text("utf-8")
        # What a terminal can show.
        self.assertTrue(text.isascii())
        names, used = set(), set()
        for node in ast.walk(ast.parse(text, feature_version=(3, 6))):
            if isinstance(node, ast.Import):
                names |= {alias.name.split(".")[0] for alias in node.names}
            elif isinstance(node, ast.ImportFrom):
                names.add(node.module.split(".")[0])
            elif isinstance(node, ast.Attribute):
                used.add(node.attr)
            elif isinstance(node, ast.keyword):
                used.add(node.arg)
        self.assertIn("json", names)
        self.assertEqual(set(), names - sys.stdlib_module_names)
        # What came after 3.6, and is easily taken for older.
        newer = {"capture_output", "text", "fromisoformat", "removeprefix"}
        newer |= {"time_ns", "monotonic_ns", "reconfigure", "missing_ok"}
        self.assertEqual(set(), names & {"__future__", "dataclasses", "contextvars"})
        self.assertEqual(set(), used & newer)


class ThisMachineTest(testtools.TestCase):
    """Real files of the machine that the tests run on."""

    def test_guest(self):
        done = collect("guest", "--interval", "0.1")
        self.assertEqual((0, b""), (done.returncode, done.stderr))
        found = reading.loads(done.stdout.decode("ascii"), "the output")
        self.assertEqual("guest", found.kind)
        self.assertEqual(os.uname().nodename, found.hostname)
        self.assertGreaterEqual(found.interval_s, 0.1)
        release = found.text("/proc/sys/kernel/osrelease")
        self.assertEqual(f"{os.uname().release}\n", release)
        first, second = found.looks("/proc/stat")
        self.assertNotEqual(first, second)
        for place, reason in found.unread.items():
            self.assertTrue(reason, place)
            self.assertNotIn("Error", reason)
        for nic in pathlib.Path("/sys/class/net").iterdir():
            if nic.is_symlink():
                self.assertEqual(str(nic.readlink()), found.links[str(nic)])
                line = f"ethtool -l {nic.name}"
                self.assertIn(line, {*found.commands, *found.unread})

    def test_host(self):
        done = collect("host", "--interval", "0.1")
        self.assertEqual((0, b""), (done.returncode, done.stderr))
        found = reading.loads(done.stdout.decode("ascii"), "the output")
        self.assertGreater(len(found.files), 50)
        for path in (*found.files, *found.later):
            self.assertTrue(re.fullmatch(HARMLESS, path), path)

    def test_it_changes_nothing(self):
        """Every file is opened for reading, and nothing else is done to any."""
        code = (
            "import os, sys\n"
            "def hook(event, args):\n"
            "    kind = event.split('.')[0]\n"
            "    if event == 'open' and args[0] != os.devnull:\n"
            "        bad = args[2] & (os.O_WRONLY | os.O_RDWR | os.O_CREAT)\n"
            "    elif event == 'subprocess.Popen':\n"
            "        command = [os.path.basename(args[1][0]), args[1][1]]\n"
            "        bad = (command[0] != 'ethtool' or command[1] not in\n"
            "            ('-l', '-i', '-S', '-x')) and command != ['virsh', '-r']\n"
            "    else:\n"
            "        bad = event in ('os.' + name for name in ('remove', 'rename',\n"
            "            'mkdir', 'rmdir', 'chmod', 'chown', 'link', 'symlink',\n"
            "            'truncate', 'utime', 'setxattr', 'system')) or kind in (\n"
            "            'socket', 'shutil') and event not in ('socket.gethostname',)\n"
            "    if bad:\n"
            "        sys.stderr.write('%s %r\\n' % (event, args))\n"
            "source = sys.stdin.read()\n"
            "sys.dont_write_bytecode = True\n"
            "code = compile(source, 'collector.py', 'exec')\n"
            "sys.addaudithook(hook)\n"
            "exec(code)\n"
        )
        done = collect("host", "--interval", "0.1", code=code)
        self.assertEqual((0, ""), (done.returncode, done.stderr.decode()))
        self.assertGreater(len(json.loads(done.stdout)["files"]), 30)


class ProcessesTest(testtools.TestCase):
    """A process with the name of QEMU's."""

    def started(self, name, **options):
        program = pathlib.Path(self.useFixture(fixtures.TempDir()).path) / name
        shutil.copy("/bin/sleep", program)
        process = subprocess.Popen([program, "60"], **options)
        self.addCleanup(process.wait)
        self.addCleanup(process.kill)
        return process.pid

    def test_qemu_and_vhost(self):
        qemu, vhost = self.started("qemu-system-x86_64"), self.started("vhost-4242")
        other = self.started("qemulator")
        done = collect("host", "--interval", "0")
        found = reading.loads(done.stdout.decode(), "the output")
        self.assertEqual("qemu-system-x86\n", found.text(f"/proc/{qemu}/comm"))
        self.assertTrue(found.text(f"/proc/{qemu}/cmdline").endswith("\x0060\0"))
        self.assertIn("Cpus_allowed_list:", found.text(f"/proc/{qemu}/status"))
        task = f"/proc/{qemu}/task/{qemu}"
        self.assertIn("Cpus_allowed_list:", found.text(f"{task}/status"))
        self.assertEqual("qemu-system-x86\n", found.text(f"{task}/comm"))
        self.assertRegex(found.text(f"{task}/schedstat"), r"^\d+ \d+ \d+\n$")
        self.assertIn("stack", found.text(f"/proc/{qemu}/numa_maps"))
        self.assertTrue(found.text(f"/proc/{qemu}/cgroup"))
        cpusets = [*found.matching("/sys/fs/cgroup/*/cpuset.cpus*")]
        cpusets += found.matching("/sys/fs/cgroup/cpuset.cpus*")
        self.assertTrue(cpusets or "/sys/fs/cgroup" in str(found.unread))
        self.assertEqual(
            [f"/proc/{vhost}/comm", f"/proc/{vhost}/status"],
            [*found.matching(f"/proc/{vhost}/*")],
        )
        self.assertEqual({}, found.matching(f"/proc/{other}/*"))

    def test_another_user(self):
        """Who is not root is told what he could not read."""
        if os.getuid():
            self.skipTest("only root can become another user")
        pid = self.started("qemu-kvm")
        found = reading.loads(self.as_nobody(), "the output")
        self.assertEqual("permission denied", found.unread[f"/proc/{pid}/numa_maps"])
        self.assertIn("Cpus_allowed_list:", found.text(f"/proc/{pid}/status"))
        self.assertIn("/proc/stat", found.files)

    def as_nobody(self):
        """Return what is collected by a child that has become somebody else.

        Another user may not be let into the directory of this Python.
        """
        ours, theirs = os.pipe()
        child = os.fork()
        if not child:
            os.dup2(theirs, 1)
            os.setgroups([])
            os.setgid(NOBODY)
            os.setuid(NOBODY)
            sys.stdout = os.fdopen(1, "w")
            os._exit(collector.main(["host", "--interval", "0"]))
        os.close(theirs)
        with os.fdopen(ours, "rb") as pipe:
            text = pipe.read().decode("ascii")
        self.assertEqual((child, 0), os.waitpid(child, 0))
        return text


class CommandsTest(DirectoryCase):
    def setUp(self):
        super().setUp()
        path = self.program("virsh", VIRSH)
        self.useFixture(fixtures.EnvironmentVariable("PATH", path))

    def test_what_they_print(self):
        virsh = self.directory / "bin/virsh"
        self.program("ethtool", ETHTOOL)
        commands = collector.collect("host", 0)["commands"]
        self.assertEqual(
            {"exit_code": 0, "stdout": f"{UUID}\n\n--pool\n", "stderr": ""},
            commands["virsh -r list --all --uuid"],
        )
        xml = f"<domain><uuid>{UUID}</uuid></domain>\n"
        self.assertEqual(xml, commands[f"virsh -r dumpxml {UUID}"]["stdout"])
        self.assertEqual(
            {"exit_code": 1, "stdout": "", "stderr": "error: no connection\n"},
            commands["virsh -r capabilities"],
        )
        self.assertEqual(CHANNELS, commands["ethtool -l lo"]["stdout"])
        self.assertEqual(1, commands["ethtool -S lo"]["exit_code"])
        self.assertEqual("C\n", virsh.with_suffix(".locale").read_text())
        self.assertFalse(virsh.with_suffix(".asked").exists())
        # Guests are not asked for domains.
        lines = collector.collect("guest", 0)["commands"]
        self.assertEqual([], [line for line in lines if "virsh" in line])

    def test_none_is_there(self):
        self.useFixture(fixtures.EnvironmentVariable("PATH", str(self.directory)))
        self.useFixture(
            fixtures.MonkeyPatch("nova_perfvm.measure.collect.collector._MORE_PATH", ())
        )
        found = collector.collect("host", 0)
        self.assertEqual({}, found["commands"])
        for line in ("ethtool -l lo", "virsh -r list --all --uuid"):
            program = line.split()[0]
            self.assertEqual(f"no such command: {program}", found["unread"][line])

    def test_one_that_does_not_end(self):
        """It is killed, with what it has started."""
        self.program("virsh", 'sleep 60 &\necho $! >> "$0.pids"\nwait')
        self.useFixture(fixtures.MonkeyPatch(f"{MODULE}._TIMEOUT_S", 0.5))
        found = collector.Collector(collector.LocalMachine())
        found.domains()
        self.assertEqual(
            {"virsh -r capabilities", "virsh -r list --all --uuid"}, {*found.unread}
        )
        self.assertEqual({"not over after 0.5 s"}, {*found.unread.values()})
        for pid in (self.directory / "bin/virsh.pids").read_text().split():
            self.assert_ends(int(pid))

    def assert_ends(self, pid):
        for _ in range(100):
            try:
                state = pathlib.Path(f"/proc/{pid}/stat").read_text().split()[2]
            except OSError:
                return
            if state == "Z":
                return
            time.sleep(0.05)
        self.fail(f"{pid} still runs")


class Pretended:
    """A machine of a few files; a value that is an exception is raised."""

    hostname = "pretended"

    def __init__(self, files, links=(), commands=()):
        self.files = files
        self.links = dict(links)
        self.commands = dict(commands)
        self.asked = []

    def now(self):
        return "2026-11-22T10:00:00+00:00"

    def read(self, path):
        self.asked.append(path)
        text = self.files.get(path)
        if isinstance(text, list):
            text = text.pop(0) if len(text) > 1 else text[0]
        if text is None:
            raise FileNotFoundError(errno.ENOENT, "No such file or directory")
        if isinstance(text, Exception):
            raise text
        return text

    def names(self, path):
        start = path.rstrip("/") + "/"
        found = {
            known.removeprefix(start).split("/")[0]
            for known in (*self.files, *self.links)
            if known.startswith(start)
        }
        if not found:
            raise FileNotFoundError(errno.ENOENT, "No such file or directory")
        return sorted(found)

    def link(self, path):
        if path not in self.links:
            raise OSError(errno.EINVAL, "Invalid argument")
        return self.links[path]

    def run(self, command):
        return self.commands.get(" ".join(command), (0, "", ""))


GONE = OSError(errno.ESRCH, "No such process")
DENIED = OSError(errno.EACCES, "Permission denied")


def processes(**changes):
    """Return files of a QEMU process with one vCPU, with changes."""
    files = {
        "/proc/1/comm": "systemd\n",
        "/proc/7/comm": "qemu-kvm\n",
        "/proc/7/cmdline": "qemu-kvm\0",
        "/proc/7/status": "Name:\tqemu-kvm\n",
        "/proc/7/cgroup": "0::/machine.slice/vm.scope/libvirt/emulator\n",
        "/proc/7/numa_maps": "7f default anon=1\n",
        "/proc/7/task/7/comm": "qemu-kvm\n",
        "/proc/7/task/7/status": "Name:\tqemu-kvm\n",
        "/proc/7/task/7/cgroup": "0::/machine.slice/vm.scope/libvirt/emulator\n",
        "/proc/7/task/8/comm": "CPU 0/KVM\n",
        "/proc/7/task/8/status": "Name:\tCPU 0/KVM\n",
        "/proc/7/task/8/cgroup": "0::/machine.slice/vm.scope/libvirt/vcpu0\n",
    }
    changes = {path.replace("_", "/"): text for path, text in changes.items()}
    return files | changes


class PretendedTest(testtools.TestCase):
    def test_what_checks_rely_on_is_collected(self):
        """All that machines without a fault show, and nothing else of them."""
        # Passwords are in nova.conf: who wants it judged names a copy.
        secrets = ("/etc/shadow", "/proc/1/environ", "/etc/nova/nova.conf")
        for seen in (sound.host(), sound.guest(1)):
            files = {
                path: [text, seen.later.get(path, text)]
                for path, text in seen.files.items()
            }
            files |= dict.fromkeys(secrets, "x")
            machine = Pretended(files, seen.links, seen.commands)
            found = collector.collect(seen.kind, 0.01, machine)
            for kind in ("files", "links", "commands"):
                lost = getattr(seen, kind).keys() - found[kind].keys()
                self.assertEqual(set(), lost - {*secrets})
            self.assertEqual(set(), {*secrets} & {*machine.asked})
            turned = {p for p, text in seen.later.items() if text != seen.files[p]}
            self.assertEqual(set(), turned - found["later"].keys())

    def test_a_kernel_without_schedstat(self):
        """The rest is read all the same, and its absence is named."""
        found = collector.collect("host", 0.01, Pretended(processes()))
        self.assertIn("/proc/7/task/7/schedstat", found["unread"])
        self.assertIn("/proc/7/task/8/comm", found["files"])

    def found(self, files, links=()):
        found = collector.Collector(Pretended(files, links))
        found.processes()
        return found

    def test_cpusets_of_version_2(self):
        """The tasks' own, or that of the next group above."""
        scope = "/sys/fs/cgroup/machine.slice/vm.scope"
        cpusets = {
            f"{scope}/libvirt/vcpu0/cpuset.cpus": "4\n",
            f"{scope}/libvirt/vcpu0/cpuset.cpus.effective": "4\n",
            f"{scope}/cpuset.cpus.effective": "0-7\n",
            "/sys/fs/cgroup/cpuset.cpus.effective": "0-15\n",
        }
        found = self.found(processes() | cpusets)
        got = {p: t for p, t in found.files.items() if p.startswith("/sys")}
        del cpusets["/sys/fs/cgroup/cpuset.cpus.effective"]
        self.assertEqual(cpusets, got)
        self.assertIn(f"{scope}/libvirt/emulator/cpuset.cpus", found.unread)

    def test_limits_of_version_2(self):
        """Of each cgroup up to the root what its controllers have."""
        root = "/sys/fs/cgroup/machine.slice"
        limits = {
            f"{root}/cgroup.controllers": "cpu io\n",
            f"{root}/cpu.max": "3000000 100000\n",
            f"{root}/io.max": "\n",
            f"{root}/vm.scope/cgroup.controllers": "cpu memory\n",
            f"{root}/vm.scope/memory.max": "max\n",
        }
        others = {
            f"{root}/vm.scope/io.max": "no controller\n",
            "/sys/fs/cgroup/cgroup.controllers": "cpu io\n",
        }
        found = self.found(processes() | limits | others)
        got = {p: t for p, t in found.files.items() if p.startswith("/sys")}
        self.assertEqual(limits, got)
        for lacking in (
            "vm.scope/cpu.max",
            "vm.scope/libvirt/vcpu0/cgroup.controllers",
        ):
            self.assertIn(f"{root}/{lacking}", found.unread)
        counters = {p for p in found.task_counters() if p.startswith("/sys")}
        expected = {f"{root}/cpu.stat", f"{root}/vm.scope/memory.events"}
        self.assertEqual(expected, counters)

    def test_limits_of_version_1(self):
        group = "4:cpu,cpuacct:/machine/vm\n5:blkio:/machine\n0::/\n"
        names = ("_proc_7_cgroup", "_proc_7_task_7_cgroup", "_proc_7_task_8_cgroup")
        quota = "/sys/fs/cgroup/cpu/machine/vm/cpu.cfs_quota_us"
        throttle = "/sys/fs/cgroup/blkio/machine/blkio.throttle.read_bps_device"
        limits = {quota: "80000\n", throttle: "259:3 1\n"}
        found = self.found(processes(**dict.fromkeys(names, group)) | limits)
        got = {p: t for p, t in found.files.items() if p.startswith("/sys")}
        self.assertEqual(limits, got)

    def test_cpusets_of_version_1(self):
        group = "11:cpuset:/machine/vm\n0::/machine.slice\n"
        cpuset = "/sys/fs/cgroup/cpuset/machine/vm/cpuset."
        cpusets = {f"{cpuset}cpus": "0-3\n", f"{cpuset}mems": "0\n"}
        names = ("_proc_7_cgroup", "_proc_7_task_7_cgroup", "_proc_7_task_8_cgroup")
        files = processes(**dict.fromkeys(names, group)) | cpusets
        files["/sys/fs/cgroup/machine.slice/cpuset.cpus"] = "no"
        found = self.found(files)
        got = {p: t for p, t in found.files.items() if p.startswith("/sys")}
        self.assertEqual(cpusets, got)

    def test_processes_and_tasks_that_end_meanwhile(self):
        whole = self.found(processes())
        for ended in ("comm", "cmdline", "status", "cgroup", "numa_maps"):
            files = {
                path: GONE if path == f"/proc/7/{ended}" else text
                for path, text in processes().items()
            }
            files["/proc/7/status"] = GONE
            found = self.found(files)
            self.assertEqual(({}, {}), (found.files, found.unread), ended)
        # While its tasks are read.
        seen = processes()["/proc/7/status"]
        found = self.found(processes(_proc_7_status=[seen, seen, GONE]))
        self.assertEqual(({}, {}), (found.files, found.unread))
        found = self.found(processes(_proc_7_task_8_status=["x", GONE]))
        lost = {f"/proc/7/task/8/{name}" for name in ("comm", "status", "cgroup")}
        self.assertEqual(lost, whole.files.keys() - found.files.keys())

    def test_what_is_denied_is_named(self):
        found = self.found(processes(_proc_7_cmdline=DENIED))
        self.assertEqual("permission denied", found.unread["/proc/7/cmdline"])
        self.assertIn("/proc/7/status", found.files)
        found = self.found(processes(_proc_7_comm=DENIED))
        self.assertEqual({"/proc/7/comm": "permission denied"}, found.unread)
        found = self.found(processes(_proc_7_cgroup="0::/../../x\n"))
        reason = "outside of the collector's cgroup namespace"
        self.assertEqual(reason, found.unread["/sys/fs/cgroup/../../x"])
        # Mounted with hidepid, /proc does not even have the names of others.
        files = {p: t for p, t in processes().items() if not p.startswith("/proc/1/")}
        self.assertIn("hidden", self.found(files).unread["/proc"])

    def test_directory_without_provider_config_files(self):
        path = "/etc/nova/provider_config"
        machine = Pretended({f"{path}/perfvm.yaml~": "not for nova-compute"})
        found = collector.collect("host", 0, machine)
        self.assertEqual("perfvm.yaml~\n", found["files"][path])
        self.assertNotIn(path, found["unread"])
        self.assertNotIn(f"{path}/perfvm.yaml~", machine.asked)
        self.assertNotIn(path, collector.collect("guest", 0, machine)["files"])

    def test_nics(self):
        nics = {f"/sys/class/net/{n}": "../../x" for n in ("eth10", "eth9", "-E")}
        machine = Pretended({"/sys/class/net/bonding_masters": ""}, nics)
        found = collector.Collector(machine)
        found.nics()
        self.assertEqual(
            [f"ethtool -{o} eth{n}" for n in (9, 10) for o in "likSx"],
            [*found.commands],
        )
        self.assertEqual(
            {"ethtool takes this name for an option"}, {*found.unread.values()}
        )

    def test_counters_twice(self):
        nic = "/sys/class/net/eth0/statistics/rx_bytes"
        files = {
            "/proc/stat": ["cpu 1", "cpu 2"],
            nic: ["7", GONE],
            "/proc/cmdline": "q",
        }
        found = collector.collect("guest", 0.01, Pretended(files))
        self.assertEqual({"/proc/stat": "cpu 2"}, found["later"])
        self.assertEqual("cpu 1", found["files"]["/proc/stat"])
        self.assertEqual("7", found["files"][nic])
        self.assertEqual("no such process", found["unread"][nic])
        self.assertGreaterEqual(found["interval_s"], 0.01)
        once = collector.collect("guest", 0, Pretended({"/proc/stat": "cpu 1"}))
        self.assertEqual((0, {}), (once["interval_s"], once["later"]))

    def test_counters_are_read_last(self):
        """What the collector did before would be in the first look's rates."""
        files = dict.fromkeys(("/proc/interrupts", "/proc/stat", "/proc/cpuinfo"), "x")
        machine = Pretended(files)
        collector.collect("host", 0.01, machine)
        read = [path for path in machine.asked if path in files]
        self.assertEqual("/proc/cpuinfo", read[0])
        self.assertEqual({"/proc/interrupts", "/proc/stat"}, {*read[1:]})

    def test_long_files_and_odd_bytes(self):
        path = pathlib.Path(self.useFixture(fixtures.TempDir()).path) / "file"
        path.write_bytes(b"a\xffb")
        machine = collector.LocalMachine()
        self.assertEqual("a\ufffdb", machine.read(str(path)))
        with fixtures.MonkeyPatch(f"{MODULE}.MOST_BYTES", 1 << 20):
            path.write_bytes(b"x" * (1 << 20))
            self.assertEqual(1 << 20, len(machine.read(str(path))))
            for endless in (path, "/dev/zero"):
                path.write_bytes(b"x" * ((1 << 20) + 1))
                error = self.assertRaises(OSError, machine.read, str(endless))
                self.assertEqual("longer than 1 MiB", error.strerror)


class OutputTest(testtools.TestCase):
    def main(self, *arguments):
        """Run it in this process; return exit status and what it said."""
        stdout, stderr = io.StringIO(), io.StringIO()
        with contextlib.redirect_stdout(stdout), contextlib.redirect_stderr(stderr):
            try:
                status = collector.main(arguments)
            except SystemExit as exc:
                status = exc.code
        return status, stdout.getvalue(), stderr.getvalue()

    def test_standard_output(self):
        status, stdout, stderr = self.main("guest", "--interval", "0")
        self.assertEqual((0, ""), (status, stderr))
        self.assertIn("/proc/stat", reading.loads(stdout, "the output").files)

    def test_it_cannot_be_written(self):
        with SCRIPT.open("rb") as script, pathlib.Path("/dev/full").open("wb") as full:
            done = subprocess.run(
                [sys.executable, "-", "guest", "--interval", "0"],
                stdin=script,
                stdout=full,
                stderr=subprocess.PIPE,
                check=False,
            )
        self.assertEqual(1, done.returncode)
        words = b"cannot write: no space left on device\n"
        self.assertEqual(words, done.stderr[: len(words)])

    def test_wrong_use(self):
        for interval in ("-1", "nan", "inf", "1e9", "soon", ""):
            status, stdout, stderr = self.main("guest", f"--interval={interval}")
            self.assertEqual((2, ""), (status, stdout))
            self.assertIn("expected seconds from 0 to 3600", stderr)
        self.assertEqual(2, self.main("server")[0])

    def test_interrupted(self):
        # A shell has what runs in the background ignore it.
        before = signal.signal(signal.SIGINT, signal.default_int_handler)
        self.addCleanup(signal.signal, signal.SIGINT, before)
        with fixtures.MonkeyPatch(
            "nova_perfvm.measure.collect.collector.LocalMachine.now",
            lambda _self: signal.raise_signal(signal.SIGINT),
        ):
            self.assertEqual((130, "", "\n"), self.main("guest"))
