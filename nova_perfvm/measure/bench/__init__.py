# SPDX-License-Identifier: Apache-2.0
"""Benchmarks: who runs what, how the tools are run, what they say."""
