# SPDX-License-Identifier: Apache-2.0
"""The sandbox: OpenStack as separate processes on one machine, to try the project."""
