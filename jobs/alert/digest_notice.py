"""What the chat is told of weeks, as a value."""

from jobs.alert.outgoing import Notice
from jobs.digest.digest import Digest


class DigestNotice(Notice, frozen=True, kw_only=True):
    """A digest: a picture, and a text of which this is the first page."""

    digest: int
    """The row of table `digest` that its other pages are in."""
    body: Digest
