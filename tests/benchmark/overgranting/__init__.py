# SPDX-License-Identifier: Apache-2.0
"""How often Placement grants more than it has, on a MariaDB that this starts.

Several processes, each the Placement that can be imported here, ask one provider
of 40 PCPU for 20 each, all at once; then the provider's usage is read.  Two of
them have room.  Rows differ in the isolation level, in MariaDB's snapshot
isolation and in [placement]allocation_conflict_retry_count.

    python -m tests.benchmark.overgranting [--rounds N] [--processes N]

MariaDB runs in a directory of its own, on a port of 127.0.0.1 that nobody uses,
and is gone afterwards.  Nothing of Placement but its WSGI application is called:
install a patched one, and run this again.
"""
