# SPDX-License-Identifier: Apache-2.0
"""Whether a host is set up to keep the policy's promise: a check in each file."""
