"""A table format whose sessions do to the process that reads them what hostile databases may do."""

import os
import signal
import sqlite3
from pathlib import Path

from jobs.sources.openclaw_events import Transcript
from jobs.sources.openclaw_tables import Tables

OUTPUT = 1


class Odd(Tables):
    """OpenClaw's tables; what happens is what a session is called."""

    def reader(self, database: sqlite3.Connection, path: str, session: str, state: str, /) -> Transcript:
        match session:
            case "fails":
                raise ValueError("no such luck")
            case "exits":
                os._exit(3)
            case "hangs":
                signal.pause()
            case "eats":
                bytearray(4 << 30)
            case "cuts":
                os.truncate(f"{path}-shm", 0)
                database.execute("SELECT count(*) FROM transcript_events").fetchone()
            case "babbles":
                os.write(OUTPUT, b"\0\0\0\4what")
            case "boasts":
                os.write(OUTPUT, b"\xff\xff\xff\xff")
            case "waits":
                Path(path).with_suffix(".pid").write_text(f"{os.getpid()}")
        return Transcript(
            session=session, agent=os.environ.get("LOOPWARDEN_TOKEN", ""), parent=None, state=state
        )
