# SPDX-License-Identifier: Apache-2.0
"""What the collected texts mean: one file for each source, each with its reader."""
