# SPDX-License-Identifier: Apache-2.0
"""Whether a guest is set up to use what it has; what reads the same shares a file."""
