# SPDX-License-Identifier: Apache-2.0
"""What stands for Glance beside the in-process Nova and Placement.

It answers as Glance's v2 API does: one flat document an image, JSON patches
that are made as a whole or not at all, 409 for what is not as they take it;
hidden images in no list with others, and community images, all of which are
of others here, only in lists of every visibility.
"""

import urllib.parse
import uuid

from tests.functional.service import Answering, ServiceFixture

PATCH = "application/openstack-images-v2.1-json-patch"
# Glance keeps pages small when it likes to.
PAGE = 2


class Glance(Answering):
    """Images, and patches to them."""

    images = {}  # noqa: RUF012
    refuse = 0
    patches = 0
    meddle = None
    # What owners do to their images, by ID, whenever they are changed; what it
    # returns is the status of the answer.
    owner = {}  # noqa: RUF012

    def do_GET(self):  # noqa: N802
        url = urllib.parse.urlparse(self.path)
        query = dict(urllib.parse.parse_qsl(url.query))
        if url.path == "/":
            here = f"http://{self.headers['Host']}/v2/"
            links = [{"rel": "self", "href": here}]
            version = {"id": "v2.16", "status": "CURRENT", "links": links}
            self.answer(300, {"versions": [version]})
            return
        name = url.path.removeprefix("/v2/images").strip("/")
        if name:
            found = self.images.get(urllib.parse.unquote(name))
            self.answer(200 if found else 404, found or {"message": "No image found"})
            return
        found = [
            image
            for image in self.images.values()
            if query.get("name") in {None, image["name"]}
            and query.get("tag") in {None, *image["tags"]}
            and image["os_hidden"] == (query.get("os_hidden") == "true")
            and (image["visibility"] != "community" or query.get("visibility") == "all")
        ]
        if "marker" in query:
            ids = [image["id"] for image in found]
            found = found[ids.index(query["marker"]) + 1 :]
        page = {"images": found[:PAGE]}
        if len(found) > PAGE:
            page["next"] = "/v2/images?marker=x"
        self.answer(200, page)

    def do_PATCH(self):  # noqa: N802
        body = self.body()
        image = self.images[self.path.rpartition("/")[2]]
        if Glance.refuse or self.headers["Content-Type"] != PATCH:
            self.answer(Glance.refuse or 415, {"message": "refused"})
            return
        if Glance.meddle:
            Glance.meddle(image)
            Glance.meddle = None
        if self.owner.get(image["id"]):
            status = self.owner[image["id"]](image)
            if status != 200:
                self.answer(status, {"message": "it is full"})
                return
        changed = dict(image)
        for operation in body:
            key = operation["path"].removeprefix("/")
            if (operation["op"] != "add") and key not in changed:
                self.answer(409, {"message": f"Property {key} does not exist."})
                return
            if operation["op"] == "remove":
                del changed[key]
            else:
                changed[key] = operation["value"]
        image.clear()
        image.update(changed)
        Glance.patches += 1
        self.answer(200, image)


class GlanceFixture(ServiceFixture):
    """Glance at a URL, without images yet."""

    HANDLER = Glance

    def _setUp(self):  # noqa: N802
        super()._setUp()
        Glance.images, Glance.refuse, Glance.patches = {}, 0, 0
        self.images = Glance.images
        Glance.meddle, Glance.owner = None, {}

    def add(self, name="debian", tags=(), **properties):
        """Add an image; return what Glance has of it."""
        image = {
            "id": str(uuid.uuid4()),
            "name": name,
            "status": "active",
            "tags": [*tags],
            "min_disk": 0,
            "os_hidden": False,
            "visibility": "public",
            **properties,
        }
        Glance.images[image["id"]] = image
        return image
