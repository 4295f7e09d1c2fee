"""Process that holds the lock of an evidence area.

The lock itself is not acquired: an attempt would make a run fail that starts at that moment. The list of
locks of all processes comes from Linux.
"""

from __future__ import annotations

import os
import pwd
from dataclasses import dataclass
from pathlib import Path

LOCKS = Path("/proc/locks")


@dataclass(frozen=True)
class Holder:
    """Process that holds a lock.

    Attributes
    ----------
    process : int
    user : str
    own : bool
        Whether this user started it.
    """

    process: int
    user: str
    own: bool

    @property
    def sentence(self) -> str:
        """Return a sentence that names the holder of the lock and explains the effect of the lock."""
        whose = "A run of yours" if self.own else f"A run of {self.user}"
        return (
            f"{whose} (process {self.process} of this machine) holds the lock of this evidence area: until "
            "it has ended, no other process can check, protect, approve or withdraw here."
        )


def holder_of(folder: Path) -> Holder | None:
    """Return the process that holds the lock of a folder; None if there is none, or if the system does not
    list locks.
    """
    try:
        status = folder.stat()
        lines = LOCKS.read_text().splitlines()
    except OSError:
        return None
    device = f"{os.major(status.st_dev):02x}:{os.minor(status.st_dev):02x}:{status.st_ino}"
    for line in lines:
        fields = line.split()
        if len(fields) >= 6 and fields[1] == "FLOCK" and "->" not in fields and fields[5] == device:
            return _holder(int(fields[4]))
    return None


def _holder(process: int) -> Holder | None:
    try:
        owner = Path(f"/proc/{process}").stat().st_uid
    except OSError:  # the process runs in another container, or has ended
        return Holder(process, "another user or container", False)
    try:
        name = pwd.getpwuid(owner).pw_name
    except KeyError:
        name = f"user {owner}"
    return Holder(process, name, owner == os.getuid())
