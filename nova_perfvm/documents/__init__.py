# SPDX-License-Identifier: Apache-2.0
"""Read and write the files that commands exchange with people.

:mod:`~nova_perfvm.documents.keys` maps dataclasses to the keys of a file,
:mod:`~nova_perfvm.documents.document` reads and writes whole files of each kind, and
:mod:`~nova_perfvm.documents.mistakes` describes the mistakes in a file.
"""
