# SPDX-License-Identifier: Apache-2.0
"""The script that enables and spreads queues, run on a pretended /sys and /proc."""

import os
import pathlib
import shutil
import subprocess

import fixtures
import testtools
import yaml

from nova_perfvm.measure.checks import queue_script
from tests.unit.measure import guests

SCRIPT_PATH = "/usr/local/sbin/perfvm-queues"
UNIT = "perfvm-queues.service"
# Remembers how many queues are enabled, and makes their directories as the kernel
# does.
ETHTOOL = """\
#!/bin/sh
root={root}
echo "$*" >> $root/calls
case $1 in
-l)
    printf 'Pre-set maximums:\\nRX:\\t\\tn/a\\nCombined:\\t%s\\n' "$(cat $root/maximum)"
    printf 'Current hardware settings:\\nCombined:\\t%s\\n' "$(cat $root/enabled)"
    ;;
-L)
    [ ! -e $root/refuses ] || exit 1
    echo $4 > $root/enabled
    queue=0
    while [ $queue -lt $4 ]; do
        net=$root/sys/class/net/$2/queues
        mkdir -p $net/rx-$queue $net/tx-$queue
        echo 00000000 > $net/tx-$queue/xps_cpus
        queue=$((queue + 1))
    done
    ;;
esac
"""


class ScriptTest(testtools.TestCase):
    def guest(self, vcpus, present, enabled, chosen=lambda _queue: 0, online=None):
        """Write the files of a new guest.

        :param chosen: {queue: CPU that the kernel has chosen}
        """
        self.root = pathlib.Path(self.useFixture(fixtures.TempDir()).path)
        self.script = queue_script.script()
        for variable, path in (("SYS", "/sys"), ("PROC", "/proc")):
            line = f"\n{variable}={path}\n"
            self.assertEqual(1, self.script.count(line))
            pretended = f"\n{variable}={self.root}{path}\n"
            self.script = self.script.replace(line, pretended)
        rows = guests.queue_rows(present, lambda _direction, _queue: {})
        self.write("proc/interrupts", guests.interrupts(rows, vcpus))
        for irq in range(25, 25 + 2 * present):
            cpus = f"{chosen((irq - 25) // 2)}\n"
            self.write(f"proc/irq/{irq}/smp_affinity_list", cpus)
        self.write(
            "sys/devices/system/cpu/online", f"{online or f'0-{vcpus - 1}'}\n"
        )  # fmt: skip
        self.nic("eth0", "virtio0", "virtio_net")
        self.nic("eth1", "0000:00:05.0", "mlx5_core")
        (self.root / "sys/class/net/lo").mkdir()
        self.write("maximum", str(present))
        self.write("enabled", str(enabled))
        for queue in range(enabled):
            base = "sys/class/net/eth0/queues"
            (self.root / f"{base}/rx-{queue}").mkdir(parents=True)
            self.write(f"{base}/tx-{queue}/xps_cpus", "00000000\n")
        self.write("bin/ethtool", ETHTOOL.format(root=self.root))
        (self.root / "bin/ethtool").chmod(0o755)

    def nic(self, name, device, driver):
        home = self.root / "sys/devices" / device
        (home / "net" / name).mkdir(parents=True)
        (home / "driver").symlink_to(f"../../bus/drivers/{driver}")
        net = self.root / "sys/class/net"
        net.mkdir(parents=True, exist_ok=True)
        (home / "net" / name / "device").symlink_to(f"../../../{device}")
        (net / name).symlink_to(f"../../devices/{device}/net/{name}")

    def write(self, path, text):
        (self.root / path).parent.mkdir(parents=True, exist_ok=True)
        (self.root / path).write_text(text)

    def read(self, path):
        return (self.root / path).read_text().strip()

    def run_script(self, shell="sh", path=None):
        environment = {"PATH": path or f"{self.root}/bin:{os.environ['PATH']}"}
        return subprocess.run(
            [shutil.which(shell), "-c", self.script],
            capture_output=True,
            check=False,
            env=environment,
            text=True,
        )

    def vectors(self, queues, direction):
        first = 25 if direction == "input" else 26
        return [
            self.read(f"proc/irq/{first + 2 * queue}/smp_affinity_list")
            for queue in range(queues)
        ]

    def sending(self, queues):
        base = "sys/class/net/eth0/queues"
        return [self.read(f"{base}/tx-{n}/xps_cpus") for n in range(queues)]

    def test_a_guest_that_uses_one_queue(self):
        for shell in ("dash", "bash"):
            if shutil.which(shell) is None:
                continue
            self.guest(40, 40, 1)
            done = self.run_script(shell)
            self.assertEqual((0, ""), (done.returncode, done.stderr))
            self.assertEqual("40", self.read("enabled"))
            each = [str(cpu) for cpu in range(40)]
            self.assertEqual(each, self.vectors(40, "input"))
            self.assertEqual(each, self.vectors(40, "output"))
            self.assertEqual(
                [guests.mask([cpu]).strip() for cpu in range(40)],
                [mask.removeprefix("00000000,") for mask in self.sending(40)],
            )

    def test_again_changes_nothing(self):
        self.guest(20, 20, 1)
        self.run_script()
        done = self.run_script()
        self.assertEqual((0, "", ""), (done.returncode, done.stdout, done.stderr))
        self.assertEqual(1, self.read("calls").count("-L"))

    def test_fewer_queues_than_cpus(self):
        self.guest(8, 4, 1, online="0-3,8,10-12")
        self.run_script()
        self.assertEqual(["0", "1", "2", "3"], self.vectors(4, "input"))
        # 0 and 8, 1 and 10, 2 and 11, 3 and 12.
        self.assertEqual(["00000101", "00000402", "00000804", "00001008"],
                         self.sending(4))  # fmt: skip

    def test_more_queues_than_cpus(self):
        self.guest(4, 16, 16)
        self.run_script()
        self.assertEqual("16", self.read("enabled"))
        self.assertEqual(["0", "1", "2", "3"], self.vectors(4, "input"))
        self.guest(4, 16, 1)
        self.run_script()
        self.assertEqual("4", self.read("enabled"))

    def test_what_fails_is_said(self):
        self.guest(4, 4, 1)
        self.write("refuses", "")
        done = self.run_script()
        self.assertEqual(1, done.returncode)
        self.assertIn("eth0: cannot enable 4 queues", done.stderr)
        self.guest(4, 4, 4)
        (self.root / "bin/ethtool").write_text("#!/bin/sh\nexit 127\n")
        done = self.run_script()
        self.assertEqual(1, done.returncode)
        self.assertIn("ethtool does not tell its queues", done.stderr)
        # The rest is done.
        self.assertEqual(["0", "1", "2", "3"], self.vectors(4, "input"))
        self.guest(4, 4, 4)
        path = self.root / "proc/irq/27/smp_affinity_list"
        path.unlink()
        path.mkdir()
        done = self.run_script()
        self.assertEqual(1, done.returncode)
        self.assertIn("cannot write 1 to", done.stderr)


class UserDataTest(testtools.TestCase):
    def test_what_cloud_init_is_told(self):
        text = queue_script.user_data()
        self.assertEqual("#cloud-config", text.splitlines()[0])
        document = yaml.safe_load(text)
        script, unit = document["write_files"]
        self.assertEqual(queue_script.script(), script["content"])
        self.assertEqual((SCRIPT_PATH, "0755"), (script["path"], script["permissions"]))
        self.assertEqual(queue_script.unit(), unit["content"])
        self.assertIn(f"ExecStart={script['path']}\n", unit["content"])
        self.assertEqual(f"/etc/systemd/system/{UNIT}", unit["path"])
        self.assertIn(["systemctl", "enable", UNIT], document["runcmd"])
        # People read it, too.
        self.assertIn("content: |\n    #!/bin/sh\n", text)

    def test_systemd_accepts_the_unit(self):
        if shutil.which("systemd-analyze") is None:
            self.skipTest("no systemd-analyze")
        path = pathlib.Path(self.useFixture(fixtures.TempDir()).path, UNIT)
        program = shutil.which("true")
        path.write_text(queue_script.unit().replace(SCRIPT_PATH, program))
        done = subprocess.run(
            [shutil.which("systemd-analyze"), "verify", path],
            capture_output=True,
            check=False,
            text=True,
        )
        self.assertNotIn(UNIT, done.stderr)
        self.assertEqual(0, done.returncode, done.stderr)
