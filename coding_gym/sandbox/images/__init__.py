"""Images without a daemon: OCI layout folders, fetched by skopeo, unpacked once into a cache.

Covered: the image of this machine's platform; layers that are plain, gzip or zstd; the digest of
every blob. Layers are unpacked by tar in a sandbox.

Not covered: owners. The user that sandboxes run as owns all files, and may read and write
everything that root could. Set-user-id bits, device nodes and extended attributes are
dropped.
"""

from coding_gym.sandbox.images.fetching import fetch_image
from coding_gym.sandbox.images.layout import (
    find_image,
    image_digest,
    image_folder,
    image_names,
    read_manifest,
)
from coding_gym.sandbox.images.store import (
    BUILT,
    Image,
    build_sandbox,
    layer_folder,
    remove_unpacked,
    unpack_image,
)

__all__ = [
    "BUILT",
    "Image",
    "build_sandbox",
    "fetch_image",
    "find_image",
    "image_digest",
    "image_folder",
    "image_names",
    "layer_folder",
    "read_manifest",
    "remove_unpacked",
    "unpack_image",
]
