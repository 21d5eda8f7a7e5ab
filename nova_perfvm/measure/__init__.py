# SPDX-License-Identifier: Apache-2.0
"""Whether hosts and guests have the performance that a policy promises.

Four steps that work apart from each other and from any cloud: *collect* what a
machine shows, *check* it against rules, *bench* host and VM, and *compare* them.
"""
