# SPDX-License-Identifier: Apache-2.0
"""Plans of migrations: which servers go where, in which order, to what end."""
