# SPDX-License-Identifier: Apache-2.0
"""Judge a cloud: what is wrong, why a VM finds no host, how much capacity is left.

Pure functions of a policy and a snapshot: audit, explain, capacity, survey.
"""
