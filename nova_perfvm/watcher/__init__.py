# SPDX-License-Identifier: Apache-2.0
"""A goal and a strategy that Watcher loads by their entry points."""
