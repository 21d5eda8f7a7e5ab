# SPDX-License-Identifier: Apache-2.0
"""A Prometheus server of its own, with the metrics of two servers over two hours."""

import http.server
import itertools
import pathlib
import shutil
import socket
import socketserver
import subprocess
import sys
import threading
import time
import urllib.error
import urllib.request

import fixtures
import testtools

from nova_perfvm.exceptions import PerfVMError
from nova_perfvm.sizing import prometheus
from nova_perfvm.sizing.observed import BY_NAME, services_of

STEP_S = 60
MINUTES = 120
GIB = 1024**3
# {instance: (CPUs, those busy, Gbit/s received and sent, reads a second)}; for the
# last twenty minutes the first server is busier.
SERVERS = {
    "redis-01:9100": (40, 10.0, 1.0, 2.0, 300.0),
    "redis-02:9100": (40, 4.0, 0.5, 0.25, 100.0),
}
BUSIER = 3.0
READY_S = 60


def values(instance):
    """Yield (seconds, metric, labels, value) of a server, each minute."""
    cpus, busy, received, sent, reads = SERVERS[instance]
    used = idle = 0.0
    for minute in range(MINUTES + 1):
        at = (minute - MINUTES) * STEP_S
        passed = minute * STEP_S
        more = BUSIER if "01" in instance and minute > MINUTES - 20 else 1.0
        used += busy * more * STEP_S
        idle += (cpus - busy * more) * STEP_S
        modes = {"user": used, "guest": used, "idle": idle, "iowait": used}
        for cpu, mode in itertools.product(range(cpus), modes):
            labels = {"cpu": cpu, "mode": mode}
            yield at, "node_cpu_seconds_total", labels, modes[mode] / cpus
        free = 64 if "01" in instance else 100
        yield at, "node_memory_MemTotal_bytes", {}, 128 * GIB
        yield at, "node_memory_MemAvailable_bytes", {}, free * GIB
        for device, times in (("eth0", 1), ("lo", 9), ("bond0", 9), ("eth0.5", 9)):
            for way, gbps in (("receive", received), ("transmit", sent)):
                carried = gbps * times * passed * 1e9 / 8
                name = f"node_network_{way}_bytes_total"
                yield at, name, {"device": device}, carried
        for device in ("nvme0n1", "dm-0"):
            name = "node_disk_reads_completed_total"
            yield at, name, {"device": device}, reads * passed


def metrics(now):
    """Return the servers' metrics as OpenMetrics text."""
    lines = {}
    for instance in SERVERS:
        for at, name, labels, value in values(instance):
            every = labels | {"instance": instance}
            inside = ",".join(f'{key}="{text}"' for key, text in every.items())
            lines.setdefault(name, []).append(f"{name}{{{inside}}} {value} {now + at}")
    text = []
    for name, found in lines.items():
        kind = "counter" if name.endswith("_total") else "gauge"
        text += [f"# TYPE {name.removesuffix('_total')} {kind}", *found]
    return "\n".join([*text, "# EOF", ""])


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


class PrometheusTest(testtools.TestCase):
    def serve(self):
        """Start Prometheus on the metrics; return its URL."""
        for program in ("prometheus", "promtool"):
            if shutil.which(program) is None:
                why = f"no {program}: Debian's package prometheus has it"
                print(f"SKIPPED {self.id()}: {why}", file=sys.stderr)  # noqa: T201
                self.skipTest(why)
        directory = pathlib.Path(self.useFixture(fixtures.TempDir()).path)
        (directory / "metrics").write_text(metrics(int(time.time())))
        (directory / "prometheus.yml").write_text("{}\n")
        subprocess.run(
            [
                "promtool",
                "tsdb",
                "create-blocks-from",
                "openmetrics",
                "metrics",
                "data",
            ],
            check=True,
            capture_output=True,
            cwd=directory,
        )
        port = free_port()
        server = subprocess.Popen(
            [
                "prometheus",
                "--config.file=prometheus.yml",
                "--storage.tsdb.path=data",
                f"--web.listen-address=127.0.0.1:{port}",
            ],
            cwd=directory,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        self.addCleanup(server.wait)
        self.addCleanup(server.terminate)
        url = f"http://127.0.0.1:{port}"
        end = time.monotonic() + READY_S
        while True:
            try:
                urllib.request.urlopen(f"{url}/-/ready").close()
            except urllib.error.URLError:
                self.assertLess(time.monotonic(), end, "Prometheus does not start")
                self.assertIsNone(server.poll(), "Prometheus has ended")
                time.sleep(0.1)
            else:
                return url

    def test_of_two_servers(self):
        url = self.serve()
        first, second = prometheus.read(url + "/", "1h", "max")
        self.assertEqual(("redis-01:9100", 40), (first.name, first.cpus))
        self.assertAlmostEqual(30, first.used_cpus, 1)
        self.assertAlmostEqual(4, second.used_cpus, 1)
        self.assertEqual((128, 64), (first.memory_gb, first.used_memory_gb))
        self.assertEqual((128, 28), (second.memory_gb, second.used_memory_gb))
        # The larger way, of the physical device alone.
        self.assertAlmostEqual(2, first.network_gbps, 3)
        self.assertAlmostEqual(0.5, second.network_gbps, 3)
        self.assertAlmostEqual(300, first.read_iops, 3)
        self.assertIsNone(first.write_iops)
        # A quarter of the hour's values are of the busier minutes.
        (p95, _) = prometheus.read(url, "1h", "p95")
        self.assertAlmostEqual(30, p95.used_cpus, 1)
        (service,) = services_of((first, second), BY_NAME, "max")
        self.assertEqual(("redis", 2), (service.name, service.servers))
        self.assertAlmostEqual(75, service.cpu_percent, 0)
        error = self.assertRaises(PerfVMError, prometheus.read, url, "0h", "max")
        self.assertIn("400", str(error))
        self.assertIn("duration", str(error))

    def test_without_metrics(self):
        self.useFixture(fixtures.MonkeyPatch(f"{__name__}.SERVERS", {}))
        self.useFixture(
            fixtures.MonkeyPatch(
                f"{__name__}.metrics",
                lambda now: f"# TYPE up gauge\nup 1 {now}\n# EOF\n",
            )
        )
        error = self.assertRaises(
            PerfVMError, prometheus.read, self.serve(), "1h", "max"
        )
        self.assertIn("expected node_cpu_seconds_total and", str(error))


class OthersTest(testtools.TestCase):
    """Servers that are not Prometheus."""

    def answering(self, status, body):
        class Handler(http.server.BaseHTTPRequestHandler):
            def do_POST(self):
                self.send_response(status)
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *_):
                pass

        server = http.server.HTTPServer(("127.0.0.1", 0), Handler)
        self.addCleanup(server.server_close)
        self.addCleanup(server.shutdown)
        threading.Thread(target=server.serve_forever, daemon=True).start()
        return f"http://127.0.0.1:{server.server_port}"

    def closing(self, line):
        """Return the URL of a server of another protocol, which says one line."""
        server = socketserver.TCPServer(
            ("127.0.0.1", 0), lambda request, *_: request.sendall(line)
        )
        self.addCleanup(server.server_close)
        self.addCleanup(server.shutdown)
        threading.Thread(target=server.serve_forever, daemon=True).start()
        return f"http://127.0.0.1:{server.server_address[1]}"

    def test_what_each_says(self):
        for url, words in (
            ("file:///etc/passwd", "expected a URL such as http://prometheus:9090"),
            ("prometheus:9090", "expected a URL such as http://prometheus:9090"),
            (f"http://127.0.0.1:{free_port()}", "gives no answer of Prometheus"),
            ("http://127.0.0.1:9o9o", "9o9o gives no answer of Prometheus: nonnumeric"),
            ("http://[::1", "http://[::1 gives no answer of Prometheus"),
            (self.closing(b"SSH-2.0-OpenSSH_9.9\r\n"), "gives no answer of Prometheus"),
            (self.answering(200, b"<html>"), "gives no answer of Prometheus"),
            (self.answering(200, b'{"data": {}}'), "gives no answer of Prometheus"),
            (self.answering(404, b"<html>"), "404: Not Found: expected the URL of"),
            (self.answering(503, b'{"error": "busy"}'), "Unavailable: busy"),
        ):
            error = self.assertRaises(PerfVMError, prometheus.read, url, "1h", "max")
            self.assertIn(words, str(error))
