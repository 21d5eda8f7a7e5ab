# SPDX-License-Identifier: Apache-2.0

import json
import pathlib

import testtools

from nova_perfvm.exceptions import PerfVMError
from nova_perfvm.sizing import sadf
from nova_perfvm.sizing.observed import BY_NAME, ServerUse, quantile, services_of
from nova_perfvm.sizing.services import Service

# As sysstat 12.6.1 prints it by sadf.COMMAND, with some values changed.
SAMPLE = pathlib.Path(__file__).with_name("sadf.json").read_text()


class ServicesOfTest(testtools.TestCase):
    def test_busiest_server_of_each(self):
        servers = (
            ServerUse("redis-01.example.org", 40, 18.4, 128, 60, 2.0),
            ServerUse("redis-02.example.org", 20, 12.0, 64, 63.5, 3.0004, 50.0),
            ServerUse("web1:9100", 4, 0.0, 8, 2),
        )
        self.assertEqual(
            (
                Service(
                    name="redis",
                    servers=2,
                    cpus=40,
                    cpu_percent=46.0,
                    memory_gb=128,
                    used_memory_gb=63.5,
                    network_gbps=3.001,
                    read_iops=50,
                    peak="p95",
                ),
                Service(
                    name="web",
                    servers=1,
                    cpus=4,
                    cpu_percent=0.1,
                    memory_gb=8,
                    used_memory_gb=2,
                    peak="p95",
                ),
            ),
            services_of(servers, BY_NAME, "p95"),
        )

    def test_busy_cpus_are_rounded_up(self):
        for used, percent in ((18.41, 46.1), (18.4, 46.0), (2.8, 7.0), (40.1, 100.0)):
            (found,) = services_of([ServerUse("db", 40, used, 1, 1)], BY_NAME, "max")
            self.assertEqual(percent, found.cpu_percent)

    def test_names(self):
        for name, service in (
            ("redis-01.example.org:9100", "redis"),
            ("web12", "web"),
            ("k8s-worker_3", "k8s-worker"),
            ("db", "db"),
        ):
            (found,) = services_of([ServerUse(name, 1, 1, 1, 1)], BY_NAME, "max")
            self.assertEqual(service, found.name, name)

    def test_a_server_that_is_there_twice(self):
        """In sadf's output and in Prometheus."""
        both = [ServerUse("web1", 4, used, 8, 2) for used in (1.0, 3.0)]
        error = self.assertRaises(PerfVMError, services_of, both, BY_NAME, "max")
        self.assertIn("server web1 is given twice", str(error))

    def test_expressions(self):
        server = ServerUse("10.0.0.1:9100", 1, 1, 1, 1)
        for pattern, words in (
            (BY_NAME, "server 10.0.0.1:9100: --service-of"),
            (".*", "expected an expression whose first group is the service"),
            ("(", "--service-of '(': missing )"),
        ):
            error = self.assertRaises(
                PerfVMError, services_of, [server], pattern, "max"
            )
            self.assertIn(words, str(error))
        (found,) = services_of([server], r"(10\.0).*", "max")
        self.assertEqual("10.0", found.name)

    def test_quantiles(self):
        values = range(1, 101)
        for peak, expected in (("max", 100), ("p99", 99), ("p95", 95)):
            self.assertEqual(expected, quantile(values, peak))
        self.assertEqual(7, quantile([7], "p95"))


def of_memory(used):
    """Return the sample, with other (KiB, percentage) of used memory."""
    found = json.loads(SAMPLE)
    (host,) = found["sysstat"]["hosts"]
    sample = host["statistics"][0]
    host["statistics"] = [
        {
            **sample,
            "memory": {"avail": 521000000, "memused": kib, "memused-percent": percent},
        }
        for kib, percent in used
    ]
    return json.dumps(found)


def parsed(*texts, peak="max"):
    """Return the servers of some files."""
    outputs = [found for text in texts for found in sadf.parse(text, "sadf.json")]
    return sadf.servers(outputs, peak)


def day(date, *idle, name="redis-01", cpus=2):
    """Return the file of a day, with a sample for each percentage of idle time."""
    found = json.loads(SAMPLE)
    (host,) = found["sysstat"]["hosts"]
    host |= {"nodename": name, "number-of-cpus": cpus}
    sample = host["statistics"][0]
    host["statistics"] = [
        {
            **sample,
            "timestamp": {"date": date, "time": f"00:{number}0:00", "utc": 1},
            "cpu-load": [{"cpu": "all", "iowait": 0.0, "idle": percent}],
        }
        for number, percent in enumerate(idle)
    ]
    return json.dumps(found)


class SadfTest(testtools.TestCase):
    def test_what_sysstat_printed(self):
        self.assertTrue(sadf.is_sadf(SAMPLE))
        (found,) = parsed(SAMPLE)
        self.assertEqual(("redis-01", 2), (found.name, found.cpus))
        # 100 - idle - iowait = 82.5 % and 61 % of 2 CPUs.
        self.assertAlmostEqual(1.65, found.used_cpus)
        # memused 1245124 KiB are 5.04 %; of the total 23026260 KiB are available.
        total = 1245124 / 0.0504 / 1024**2
        self.assertAlmostEqual(total, found.memory_gb, 1)
        self.assertAlmostEqual(total - 22988136 / 1024**2, found.used_memory_gb, 1)
        # The larger way of eth0, not that of lo: 250,000 KiB/s.
        self.assertAlmostEqual(250000 * 8192 / 1e9, found.network_gbps)
        self.assertEqual((50, 52), (found.read_iops, found.write_iops))

    def test_rounded_percentages(self):
        """A server of 524288000 KiB uses at most 1 % of them."""
        for used, expected in (
            # Rounded, 0.59 % tells the total better than 0.10 %.
            (((3072000, 0.59), (524288, 0.10)), 520677966),
            # sysstat prints 0.00 if caches are larger than the memory of a container.
            (((5242880, 1.00), (0, 0.00)), 524288000),
        ):
            (found,) = parsed(of_memory(used))
            self.assertAlmostEqual(expected / 1024**2, found.memory_gb, 3)
        # By the percentage the memory is smaller than what is available.
        (found,) = parsed(of_memory([(3072000, 0.59)]))
        self.assertEqual(0, found.used_memory_gb)
        text = of_memory([(0, 0.00)])
        error = self.assertRaises(PerfVMError, sadf.parse, text, "f.json")
        self.assertIn("expected statistics of CPUs and memory", str(error))

    def test_a_file_for_each_day(self):
        """Days are one server, whose percentiles are of all samples."""
        week = [day(f"2026-11-{n}", *[90.0] * 5) for n in range(10, 17)]
        busy = day("2026-11-17", 0.0)
        (found,) = parsed(*week, busy)
        self.assertAlmostEqual(2.0, found.used_cpus)
        (found,) = parsed(*week, busy, peak="p95")
        self.assertAlmostEqual(0.2, found.used_cpus)
        # The same hours again, and more of the same day.
        more = day("2026-11-17", 0.0, *[50.0] * 4)
        self.assertEqual(
            parsed(*week, more, peak="p95"), parsed(*week, busy, more, busy, peak="p95")
        )
        # CPUs were added: 100 % of 2, then 90 % of 4.
        (found,) = parsed(busy, day("2026-11-18", 10.0, cpus=4))
        self.assertEqual((4, 3.6), (found.cpus, found.used_cpus))
        other = day("2026-11-17", 0.0, name="redis-02")
        self.assertEqual(
            ["redis-01", "redis-02"], [s.name for s in parsed(busy, other)]
        )

    def test_two_servers_of_one_name(self):
        files = [day("2026-11-17", idle, name="localhost") for idle in (1.0, 2.0)]
        error = self.assertRaises(PerfVMError, parsed, *files)
        self.assertIn(
            "server localhost has two loads at 2026-11-17 00:00:00", str(error)
        )

    def test_an_hour_that_is_there_twice(self):
        """Summer ends, and sadf -t prints local time."""
        twice = json.loads(day("2026-10-25", 10.0, 20.0))
        for sample in twice["sysstat"]["hosts"][0]["statistics"]:
            sample["timestamp"]["time"] = "02:00:00"
        (found,) = parsed(json.dumps(twice), peak="p95")
        self.assertAlmostEqual(1.8, found.used_cpus)

    def test_other_texts(self):
        for text in (
            '{"sysstat": {"hosts": [{}]}}',
            (
                '{"sysstat": {"hosts": [{"nodename": "a", "number-of-cpus": 2, '
                '"statistics": []}]}}'
            ),
            '{"sysstat": [',
            '{"sysstat": 1}',
        ):
            self.assertTrue(sadf.is_sadf(text))
            error = self.assertRaises(PerfVMError, sadf.parse, text, "f.json")
            self.assertIn("f.json: not what sadf -j FILE -- -u -r -b", str(error))
        self.assertFalse(sadf.is_sadf("name,servers"))
