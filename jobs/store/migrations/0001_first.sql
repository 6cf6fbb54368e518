-- When the bot last looked, to know how long it was away.
CREATE TABLE presence (
    id INTEGER PRIMARY KEY CHECK (id = 1),
    at REAL NOT NULL
) STRICT;

-- How far each log file has been read.
CREATE TABLE cursor (
    source TEXT NOT NULL,
    path TEXT NOT NULL,
    position TEXT NOT NULL,             -- JSON: ports.Cursor
    PRIMARY KEY (source, path)
) STRICT, WITHOUT ROWID;

CREATE TABLE session (
    id INTEGER PRIMARY KEY AUTOINCREMENT, -- its short id in the chat, never given twice
    source TEXT NOT NULL,
    session TEXT NOT NULL,              -- the source's own id
    agent TEXT NOT NULL,
    parent TEXT,
    pid INTEGER,
    pid_since_ts REAL,
    first_ts REAL NOT NULL,
    last_ts REAL NOT NULL,
    seen_at REAL NOT NULL,
    errors INTEGER NOT NULL,
    memory TEXT NOT NULL,               -- JSON: what the detector remembers
    streak TEXT NOT NULL,               -- JSON: thrash.Streak
    UNIQUE (source, session)
) STRICT;
CREATE INDEX session_by_seen_at ON session (seen_at);

CREATE TABLE incident (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    session_id INTEGER NOT NULL REFERENCES session (id),
    agent TEXT NOT NULL,
    source TEXT NOT NULL,
    opened_at REAL NOT NULL,
    updated_at REAL NOT NULL,
    first_call INTEGER NOT NULL,
    first_ts REAL NOT NULL,
    tokens_before INTEGER,
    kind TEXT NOT NULL,
    tool TEXT NOT NULL,
    score INTEGER NOT NULL,
    steps INTEGER NOT NULL,
    calls INTEGER NOT NULL,
    newest_ts REAL NOT NULL,
    tokens INTEGER,
    status TEXT NOT NULL,
    ended TEXT,
    asked_at REAL,
    snoozed_until REAL,
    closed_at REAL
) STRICT;
CREATE INDEX incident_by_session ON incident (session_id);
CREATE UNIQUE INDEX incident_unclosed ON incident (session_id) WHERE closed_at IS NULL;

CREATE TABLE stop (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    session_id INTEGER NOT NULL REFERENCES session (id),
    incident_id INTEGER REFERENCES incident (id),
    target TEXT NOT NULL,               -- JSON: ports.Target
    ordered_by INTEGER,                 -- Telegram user id; NULL is the bot itself
    ordered_at REAL NOT NULL,
    escalates INTEGER REFERENCES stop (id),
    state TEXT NOT NULL,
    outcome TEXT,
    detail TEXT NOT NULL,
    finished_at REAL
) STRICT;
CREATE INDEX stop_by_session ON stop (session_id);
CREATE INDEX stop_by_incident ON stop (incident_id);
CREATE INDEX stop_by_escalated ON stop (escalates);
CREATE UNIQUE INDEX stop_intended ON stop (session_id) WHERE state = 'intended';
CREATE INDEX stop_unfinished ON stop (state) WHERE state <> 'over';

-- A destructive button: valid once, for one person, in one message, for one target.
CREATE TABLE confirmation (
    nonce TEXT PRIMARY KEY,
    session_id INTEGER NOT NULL REFERENCES session (id),
    pid INTEGER,
    user_id INTEGER NOT NULL,
    chat_id INTEGER NOT NULL,
    outgoing_id INTEGER NOT NULL,       -- the message that carries the button
    expires_at REAL NOT NULL,
    used_at REAL
) STRICT;
CREATE INDEX confirmation_by_session ON confirmation (session_id);

CREATE TABLE outbox (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    kind TEXT NOT NULL,
    body TEXT NOT NULL,                 -- JSON: what the notifier renders
    subject TEXT,
    mode TEXT NOT NULL,
    chat TEXT,
    silent INTEGER NOT NULL,
    target_message INTEGER,
    created_at REAL NOT NULL,
    state TEXT NOT NULL,                -- queued, sending, sent, parked
    not_before REAL NOT NULL,
    attempts INTEGER NOT NULL,
    error TEXT,
    message INTEGER,                    -- the chat's id of the message sent
    sent_at REAL
) STRICT;
CREATE INDEX outbox_waiting ON outbox (id) WHERE state IN ('queued', 'sending');
CREATE INDEX outbox_subject ON outbox (subject, id);
CREATE INDEX outbox_parked ON outbox (id) WHERE state = 'parked';
