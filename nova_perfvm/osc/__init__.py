# SPDX-License-Identifier: Apache-2.0
"""The command line: each command parses arguments, calls one function, prints columns.

``commands`` has the table of all commands, and ``options`` the arguments that several
share.  Both programs import a command's module when the command is run, so modules
import at their top.  Exceptions are packages of an extra, Nova, and oslo.config, which
loads slowly: the functions that need them import them, so that the help and all other
commands run without.
"""
