# SPDX-License-Identifier: Apache-2.0
"""What a policy becomes: flavors, image properties, configuration of hosts."""
