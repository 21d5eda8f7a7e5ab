# SPDX-License-Identifier: Apache-2.0
"""Plans: the ordered steps that turn a cloud into the one that the policy wants.

Pure: a plan is computed from a snapshot, without requests to the cloud.
"""
