"""Uses images without a daemon: skopeo fetches OCI layouts, which are unpacked into a cache once.

Covered: images of this machine's platform; layers that are plain, gzip or zstd; verification of
the digest of every blob. Layers are unpacked by tar in a sandbox.

Not covered: owners of files. The user of sandboxes owns all files, and may read and write what root
could. Set-user-id bits, device nodes and extended attributes are dropped.
"""
