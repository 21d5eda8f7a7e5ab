# SPDX-License-Identifier: Apache-2.0
"""What scheduling costs, and what a limit of candidates loses.

The real code of nova-scheduler asks a real Placement, each in processes of its
own, on a MariaDB that this starts.  Compute nodes, providers and allocations are
written into the databases in bulk, in the form in which nova-compute and
Placement write them.

    python -m tests.benchmark.scheduling [--hosts N]... [--rounds N]
"""
