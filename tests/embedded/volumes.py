# SPDX-License-Identifier: Apache-2.0
"""What Nova's pretended Cinder lacks."""

import fixtures


class Reimaging(fixtures.Fixture):
    """Let Cinder write another image onto the root volume of a server.

    Nova's fixture knows one volume for that.  Cinder tells Nova when it is
    done; so does this.

    :param cinder: Nova's CinderFixture
    :param api: an administrator's client of Nova's API
    """

    def __init__(self, cinder, api):
        super().__init__()
        self._cinder = cinder
        self._api = api

    def _setUp(self):  # noqa: N802
        method = "nova.volume.cinder.API.reimage_volume"
        self.useFixture(fixtures.MonkeyPatch(method, self._reimage))

    def _reimage(self, _context, volume_id, *_args, **_kwargs):
        attachments = self._cinder.volume_to_attachment[volume_id].values()
        events = [
            {
                "name": "volume-reimaged",
                "tag": volume_id,
                "server_uuid": server,
                "status": "completed",
            }
            for server in {a["instance_uuid"] for a in attachments}
        ]
        self._api.create_server_external_events(events)


class Multiattach(fixtures.Fixture):
    """Let Cinder say of each created volume whether it is multiattach.

    Nova asks before it boots from an existing volume; the fixture of Nova 31 answers
    only for volumes that nobody created.

    :param cinder: Nova's CinderFixture
    """

    def __init__(self, cinder):
        super().__init__()
        self._cinder = cinder

    def _setUp(self):  # noqa: N802
        method = "nova.volume.cinder.API.create"
        self.useFixture(fixtures.MonkeyPatch(method, self._create))

    def _create(self, *args, **kwargs):
        volume = self._cinder.fake_vol_create(*args, **kwargs)
        volume.setdefault("multiattach", False)
        return volume
