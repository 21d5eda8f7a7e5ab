# SPDX-License-Identifier: Apache-2.0

import testtools

from nova_perfvm.documents.mistakes import DocumentError
from nova_perfvm.sizing import services
from nova_perfvm.sizing.services import Service

HEADER = "name,servers,cpus,cpu_percent,memory_gb,peak,latency_sensitive,shares_host"
YAML = """\
kind: services
schema_version: "1.0"
services:
  redis: {servers: 12, cpus: 40, cpu_percent: 46, memory_gb: 96.5, peak: p95,
          shares_host: false}
  voip: {servers: 2, cpus: 20, memory_gb: 64, latency_sensitive: true}
"""
REDIS = Service(
    name="redis",
    servers=12,
    cpus=40,
    cpu_percent=46,
    memory_gb=96.5,
    peak="p95",
    shares_host=False,
)
VOIP = Service(name="voip", servers=2, cpus=20, memory_gb=64, latency_sensitive=True)


class ParseTest(testtools.TestCase):
    def test_csv_and_yaml_say_the_same(self):
        rows = "redis,12,40,46,96.5,p95,,no\n\nvoip,2,20,,64,,yes,\n"
        for _case, text in (
            ("csv", f"{HEADER}\n{rows}"),
            ("of a spreadsheet", f"\ufeff{HEADER}\r\n{rows}".replace(",", ";")),
            ("yaml", YAML),
        ):
            self.assertEqual((REDIS, VOIP), services.parse(text, "f"))

    def test_what_is_unknown_is_all(self):
        self.assertEqual((18.4, 96.5), (REDIS.used_cpus, REDIS.needed_memory_gb))
        self.assertEqual((20, 64), (VOIP.used_cpus, VOIP.needed_memory_gb))

    def test_all_mistakes_with_their_lines(self):
        rows = (
            "a,12,40GB,46,96,p95,,,\na,1,1,1,1,,,,\nb,0,1,101,,p50,maybe,,\n"
            "c,1,1,,1,,,,9,9\nd,1,p95"
        )
        error = self.assertRaises(
            DocumentError, services.parse, f"{HEADER},watts\n{rows}\n", "own.csv"
        )
        expected = (
            "own.csv: 8 mistakes",
            "line 3: a: is on line 2 already: give each its own name",
            "line 5: row: 10 cells, but the header has 9",
            "line 6: row: 3 cells, but the header has 9",
            "line 2: a.cpus: found '40GB', expected a whole number of CPUs from 1",
            "line 4: b.servers: found 0, expected a whole number of servers from 1",
            "line 4: b.cpu_percent: found 101, expected a percentage above 0",
            "line 4: b.peak: found 'p50', expected one of 'max', 'p99', 'p95'",
            "line 4: b.latency_sensitive: found 'maybe', expected true or false",
        )
        for words in expected:
            self.assertIn(words, str(error))

    def test_contradictions(self):
        for keys, words in (
            ("name,servers,cpus\na,1,1\n", "line 2: a.memory_gb: missing; expected"),
            (
                "name,servers,cpus,memory_gb,used_memory_gb\na,1,1,4,5\n",
                "line 2: a.used_memory_gb: 5, more than the server's memory_gb",
            ),
            (
                "servers,cpus\n1,1\n",
                "expected CSV with a header of these columns: name",
            ),
            (
                "name,servers,cpus,memory_gb,color\na,1,1,1,9\nb,1,1,1,9\n",
                "own: 1 mistake\n  line 1: color: unknown key",
            ),
            (
                f'name,servers,cpus\na,1,"1\n{"b,1,1" * 30_000}',
                "own: field larger than field limit (131072): is a quote not closed?",
            ),
            (f"name,servers,cpus\na,1,{'9' * 5000}\n", "line 2: a.cpus: found '999"),
            (
                "name,servers,cpus,memory_gb,cpus,,\na,1,8,16,4,,\n",
                "own: 1 mistake\n  line 1: cpus: named twice: leave one out",
            ),
            ("name,servers,cpus\n", "expected a row for each service below the header"),
            (
                "# Of June\n\nname,servers,cpus,memory_gb\na,1,1,128 GiB\n",
                "line 4: a.memory_gb: found '128 GiB', expected a number of GiB",
            ),
            (
                "# Of June\nname,servers,cpus,memory_gb,color\na,1,1,1,9\n",
                "line 2: color: unknown key",
            ),
            (
                "Name,Servers,CPU %,Memory (GB)\na,1,1,1\n",
                "expected CSV with a header of these columns: name",
            ),
            (" \n", "the file is empty; expected CSV with a header of these columns"),
        ):
            error = self.assertRaises(DocumentError, services.parse, keys, "own")
            self.assertIn(words, str(error))
