# SPDX-License-Identifier: Apache-2.0
"""The dashboard by Grafana's own types of dashboards and of its panels' options."""

import json

from tests.recipes import base
from tests.unit.osc.formats.test_monitoring import DASHBOARD

SCHEMA = "node_modules/@grafana/schema"
PANELS = ("stat", "table", "timeseries")
# Types have enumerations where JSON has their values.
PLAIN = """\
type Plain<T> = T extends string ? `${T}`
  : T extends number | boolean | null | undefined ? T
  : T extends (infer U)[] ? Plain<U>[]
  : T extends object ? {[K in keyof T]: Plain<T[K]>} : T;
type Part<T> = T extends object ? {[K in keyof T]?: Part<T[K]>} : T;
"""


class GrafanaTest(base.RecipeCase):
    def setUp(self):
        super().setUp()
        self.modules = self.tool("PERFVM_GRAFANA_SCHEMA")
        self.dashboard = json.loads(DASHBOARD.read_text())

    def compile(self, dashboard):
        """Let the compiler of TypeScript compare a dashboard with the types."""
        schema = self.modules / SCHEMA
        lines = [f"import type {{ Dashboard, GraphFieldConfig }} from '{schema}';"]
        lines += [
            f"import type {{ Options as {panel} }} from "
            f"'{schema}/dist/types/raw/composable/{panel}/panelcfg/x/types.gen';"
            for panel in PANELS
        ]
        lines += [PLAIN, f"const all: Plain<Dashboard> = {json.dumps(dashboard)};"]
        for number, panel in enumerate(dashboard["panels"]):
            kind, shown = panel["type"], json.dumps(panel["options"])
            lines.append(f"const options{number}: Part<Plain<{kind}>> = {shown};")
            custom = panel["fieldConfig"]["defaults"].get("custom")
            if kind == "timeseries" and custom:
                lines.append(
                    f"const custom{number}: Part<Plain<GraphFieldConfig>> = "
                    f"{json.dumps(custom)};"
                )
        source = self.directory / "dashboard.ts"
        source.write_text("\n".join(lines))
        self.run_tool(
            *(self.modules / "node_modules/.bin/tsc", "--noEmit", "--strict"),
            *("--skipLibCheck", "--target", "es2022", "--module", "esnext"),
            *("--moduleResolution", "bundler", source),
        )

    def test_the_dashboard_is_one(self):
        self.compile(self.dashboard)
