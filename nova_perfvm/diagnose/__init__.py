# SPDX-License-Identifier: Apache-2.0
"""What is wrong with a cloud, why a VM finds no host, how much room is left.

Pure functions of a policy and a snapshot: audit, explain, capacity, survey.
"""
