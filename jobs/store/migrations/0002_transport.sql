-- What Telegram has delivered: a row before it is confirmed there, until long after.
CREATE TABLE inbox (
    id INTEGER PRIMARY KEY AUTOINCREMENT, -- in the order of arrival
    bot_id INTEGER NOT NULL,            -- another bot counts its updates anew
    update_id INTEGER NOT NULL,
    body TEXT NOT NULL,                 -- JSON, as it came; empty once handled
    received_at REAL NOT NULL,
    state TEXT NOT NULL,                -- waiting, handled, set_aside
    error TEXT,
    UNIQUE (bot_id, update_id)
) STRICT;
CREATE INDEX inbox_waiting ON inbox (id) WHERE state = 'waiting';
CREATE INDEX inbox_set_aside ON inbox (id) WHERE state = 'set_aside';
CREATE INDEX inbox_by_received_at ON inbox (received_at);

-- What is known of a chat that messages go to.
CREATE TABLE chat (
    id INTEGER PRIMARY KEY,
    moved_to INTEGER,                   -- the supergroup that it has become
    pace TEXT NOT NULL,                 -- JSON: alert.Pace
    held_at REAL NOT NULL,
    free_at REAL NOT NULL,
    lost_at REAL
) STRICT;

-- A message waits for its chat now, not by itself.
ALTER TABLE outbox DROP COLUMN not_before;
ALTER TABLE outbox ADD COLUMN urgent INTEGER NOT NULL DEFAULT 0;
