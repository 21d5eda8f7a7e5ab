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
    VARIABLE = "PERFVM_GRAFANA_SCHEMA"

    def test_the_dashboard_is_one(self):
        """The compiler of TypeScript compares it with the types."""
        dashboard = json.loads(DASHBOARD.read_text())
        schema = self.tool / SCHEMA
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
        self.write("dashboard.ts", "\n".join(lines))
        self.run_tool(
            *(self.tool / "node_modules/.bin/tsc", "--noEmit", "--strict"),
            *("--skipLibCheck", "--target", "es2022", "--module", "esnext"),
            *("--moduleResolution", "bundler", "dashboard.ts"),
        )
