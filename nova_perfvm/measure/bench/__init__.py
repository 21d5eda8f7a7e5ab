# SPDX-License-Identifier: Apache-2.0
"""Benchmarks: run tools on a host and its VMs at once, and read their figures."""
