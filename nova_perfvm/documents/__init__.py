# SPDX-License-Identifier: Apache-2.0
"""The one reader and writer of every file that commands exchange with people.

:mod:`~nova_perfvm.documents.keys` turns dataclasses into the keys of a file,
:mod:`~nova_perfvm.documents.document` reads and writes whole files of each kind, and
:mod:`~nova_perfvm.documents.mistakes` is what is wrong with them.
"""
