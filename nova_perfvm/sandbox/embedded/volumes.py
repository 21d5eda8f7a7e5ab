# Licensed under the Apache License, Version 2.0 (the "License"); you may
# not use this file except in compliance with the License. You may obtain
# a copy of the License at
#
#      http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software
# distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the
# License for the specific language governing permissions and limitations
# under the License.

"""What Nova's pretended Cinder lacks."""

from __future__ import annotations

from typing import Any

import fixtures


class Reimaging(fixtures.Fixture):
    """Let Cinder write another image onto the root volume of a server.

    Nova's fixture knows one volume for that.  Cinder tells Nova when it is
    done; so does this.

    :param cinder: Nova's CinderFixture
    :param api: an administrator's client of Nova's API
    """

    def __init__(self, cinder: Any, api: Any) -> None:
        super().__init__()
        self._cinder = cinder
        self._api = api

    def _setUp(self) -> None:  # noqa: N802
        self.useFixture(
            fixtures.MonkeyPatch(
                "nova.volume.cinder.API.reimage_volume",
                self._reimage,
            ),
        )

    def _reimage(
        self, _context: Any, volume_id: str, *_args: Any, **_kwargs: Any
    ) -> None:
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
