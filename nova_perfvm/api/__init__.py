# SPDX-License-Identifier: Apache-2.0
"""What nova-api refuses: validators of the ``perfvm:`` extra specs of flavors."""
