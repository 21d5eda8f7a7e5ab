# SPDX-License-Identifier: Apache-2.0
"""Plans of migrations: which servers move to which hosts, in which order."""
