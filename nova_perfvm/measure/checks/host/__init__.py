# SPDX-License-Identifier: Apache-2.0
"""Whether a host keeps the policy's promise; checks that read the same share a file."""
