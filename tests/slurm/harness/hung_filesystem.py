"""Mounts a file system that never answers, as one on a dead server: hung_filesystem.py FOLDER.

It is FUSE without a word of reply: whoever looks into the folder waits until this process ends.
"""

from __future__ import annotations

import ctypes
import os
import sys
import time


def main(folder: str) -> None:
    device = os.open("/dev/fuse", os.O_RDWR)
    options = f"fd={device},rootmode=40000,user_id=0,group_id=0,allow_other"
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.mount(b"hung", folder.encode(), b"fuse.hung", 0, options.encode()):
        raise OSError(ctypes.get_errno(), f"mount: {os.strerror(ctypes.get_errno())}")
    print("hung", flush=True)
    time.sleep(3600)


main(sys.argv[1])
