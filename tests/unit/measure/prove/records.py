# SPDX-License-Identifier: Apache-2.0
"""Read the records of proofs, to judge them again."""

from nova_perfvm.documents.document import load_document
from nova_perfvm.measure.prove.provenance import ProofRecord


def read(path):
    return load_document("proof", ProofRecord, path)
