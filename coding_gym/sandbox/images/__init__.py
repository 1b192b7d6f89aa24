"""Images without a daemon: ``docker save`` tars and OCI layouts, unpacked once into a cache.

Covered: both layouts of ``docker save``, OCI layout folders and the same in a tar, nested indexes,
the platform of this machine; gzip, and zstd with a package; every digest is verified. Removals,
hard links, sparse files, long names and user attributes take effect.

Not covered: owners. Everything belongs to the one user that sandboxes run as, and that user may
read and write all that root could. Set-user-id bits, device nodes, FIFOs and attributes that are
not a user's (file capabilities, access lists) are left out.
"""

from coding_gym.sandbox.images.layer_unpacking import unpack_tar
from coding_gym.sandbox.images.pulling import pull_image, save_image
from coding_gym.sandbox.images.store import Image, ImageStore, image_digest, image_folder

__all__ = [
    "Image",
    "ImageStore",
    "image_digest",
    "image_folder",
    "pull_image",
    "save_image",
    "unpack_tar",
]
