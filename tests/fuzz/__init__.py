# SPDX-License-Identifier: Apache-2.0
"""Files as mistakes, bad disks and other programs make them.

Each is made of a good one by a seeded mutation and given to the real command
line in this process: no command may fail in a way that was not foreseen, take
for ever, or leave half a file.
"""

from tests import failing_rows

failing_rows.install()
