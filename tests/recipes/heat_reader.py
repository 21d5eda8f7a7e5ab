# SPDX-License-Identifier: Apache-2.0
"""Let Heat validate a template, as heat-engine does before it creates a stack.

Runs with the Python of Heat: reads the template from standard input, and prints as JSON
what each flavor's resource would ask Nova for.
"""

import json
import sys
from unittest import mock

from heat.common import context, template_format
from heat.engine import resource, resources, stack, template
from oslo_config import cfg


def main():
    """Validate the template; an error of Heat's is a traceback."""
    cfg.CONF([], project="heat", default_config_files=[], default_config_dirs=[])
    resources.initialise()
    parsed = template_format.parse(sys.stdin.read())
    # Whether a cloud has Nova is nothing that a template says.
    with mock.patch.object(
        resource.Resource, "is_service_available", return_value=(True, None)
    ):
        owner = context.RequestContext(project_id="p", user_id="u", username="admin")
        made = stack.Stack(owner, "flavors", template.Template(parsed))
        made.validate()
        found = {name: dict(one.properties) for name, one in made.resources.items()}
    json.dump(found, sys.stdout)


if __name__ == "__main__":
    main()
