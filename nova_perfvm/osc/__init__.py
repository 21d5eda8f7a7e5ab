# SPDX-License-Identifier: Apache-2.0
"""The command line: each command is a parser, one call, and columns.

``deferred`` imports a command's module when the command is run, so modules import what
they need at their top.  Only what an extra brings, Nova, and oslo.config, which takes
time, are imported in the functions that need them: help and other commands do without.
"""
