# SPDX-License-Identifier: Apache-2.0
"""What the page of ``map`` has for its script."""

import json
import re


def data(text):
    """Return it, of the page's text."""
    (found,) = re.findall(
        r'<script type="application/json" id="map">(.*?)</script>', text, re.DOTALL
    )
    return json.loads(found)
