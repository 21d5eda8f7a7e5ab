# SPDX-License-Identifier: Apache-2.0
"""The record of a proof, read back from its file."""

from nova_perfvm.documents.document import load_document
from nova_perfvm.measure.prove.provenance import ProofRecord


def read(path):
    """Return the record of a proof.

    :raises DocumentError: when it is none
    """
    return load_document("proof", ProofRecord, path)
