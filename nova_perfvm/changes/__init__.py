# SPDX-License-Identifier: Apache-2.0
"""Plans: the ordered steps from a cloud as it is to a cloud as it should be.

Pure: a plan is computed from a snapshot, without a request to the cloud.
"""
