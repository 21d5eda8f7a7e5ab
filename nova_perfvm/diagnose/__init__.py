# SPDX-License-Identifier: Apache-2.0
"""Audit, explain, capacity, survey: pure functions of a policy and a snapshot."""
