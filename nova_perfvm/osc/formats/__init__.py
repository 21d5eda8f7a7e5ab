# SPDX-License-Identifier: Apache-2.0
"""Columns of commands whose cells are more than texts, and metrics of all reports."""
