# SPDX-License-Identifier: Apache-2.0
"""A live cloud: what openstacksdk shows of it, and changes to it."""
