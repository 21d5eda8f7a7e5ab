# SPDX-License-Identifier: Apache-2.0
"""What Placement offers, and what of it finds no room after all.

A host that Placement offers and a filter refuses is an offer in vain, and a claim that
fails on the host a VM that has to go elsewhere, if it still can.
"""

import threading

import fixtures
from nova import exception
from nova.compute import claims


class Offers(fixtures.Fixture):
    """Counts them on a cloud.

    :param filters: the classes of filters that fit VMs to hosts
    :ivar offered: how many hosts Placement has offered
    :ivar refused: of these, (flavor, host) that a filter refused
    :ivar claims: how many claims there were on hosts
    :ivar failed: why some of them failed
    """

    def __init__(self, *filters):
        super().__init__()
        self._filters = filters
        self._seen = threading.local()
        self.offered, self.refused = 0, []
        self.claims, self.failed = 0, []

    def _setUp(self):  # noqa: N802
        for number, each in enumerate(self._filters):
            patched = self._counted(each.filter_all, number)
            self.useFixture(fixtures.MockPatchObject(each, "filter_all", patched))
        original = claims.Claim._claim_test

        def claim_test(claim, *args, **options):
            self.claims += 1
            try:
                return original(claim, *args, **options)
            except exception.ComputeResourcesUnavailable as error:
                self.failed.append(str(error))
                raise

        self.useFixture(
            fixtures.MockPatchObject(claims.Claim, "_claim_test", claim_test)
        )

    def _counted(self, original, number):
        def filter_all(judge, hosts, spec):
            hosts = list(hosts)
            passed = list(original(judge, hosts, spec))
            # For further servers of a request, and for alternates, Nova asks again;
            # then it is of what this request has already claimed.
            if vars(self._seen).get(number) is not spec:
                vars(self._seen)[number] = spec
                self.offered += len(hosts) if number == 0 else 0
                left = {host.host for host in passed}
                self.refused += [
                    (spec.flavor.name, host.host)
                    for host in hosts
                    if host.host not in left
                ]
            return iter(passed)

        return filter_all
