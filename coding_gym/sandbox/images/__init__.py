"""Uses images without a daemon: OCI layouts, fetched by skopeo, unpacked once into a cache.

Covered: the image of this machine's platform; layers that are plain, gzip or zstd; the digest of
every blob. Layers are unpacked by tar in a sandbox.

Not covered: owners of files. The user of sandboxes owns all files, and may read and write what root
could. Set-user-id bits, device nodes and extended attributes are dropped.
"""
