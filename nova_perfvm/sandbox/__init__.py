# SPDX-License-Identifier: Apache-2.0
"""A cloud of separate processes to try the project on."""
