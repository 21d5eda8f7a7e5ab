# SPDX-License-Identifier: Apache-2.0
"""Flavors, image properties and host configurations, generated from a policy."""
