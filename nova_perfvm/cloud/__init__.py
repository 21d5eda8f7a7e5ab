# SPDX-License-Identifier: Apache-2.0
"""Read a live cloud through openstacksdk, and change it."""
