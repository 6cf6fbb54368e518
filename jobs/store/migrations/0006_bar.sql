-- Every version of an entry of the watch list that was approved; the newest of its kind and name is in force.
CREATE TABLE pin (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    kind TEXT NOT NULL,                 -- workflow, source, killer
    name TEXT NOT NULL,
    entry TEXT,                         -- JSON: the specification; NULL: its removal was approved
    hash TEXT NOT NULL,                 -- sha256 of `entry`
    how TEXT NOT NULL,
    by INTEGER,                         -- the Telegram user who has approved it
    at REAL NOT NULL
) STRICT;
CREATE INDEX pin_by_entry ON pin (kind, name, id);

-- What the file says of an entry, where that is not what is in force.
CREATE TABLE proposal (
    id INTEGER PRIMARY KEY AUTOINCREMENT, -- for buttons, whose data is short
    kind TEXT NOT NULL,
    name TEXT NOT NULL,
    entry TEXT,                         -- as of a pin; NULL: the file does not hold it any more
    hash TEXT NOT NULL,
    state TEXT NOT NULL,                -- open, approved, rejected, withdrawn
    found_at REAL NOT NULL,
    decided_by INTEGER,
    decided_at REAL
) STRICT;
CREATE INDEX proposal_by_entry ON proposal (kind, name, id);
CREATE UNIQUE INDEX proposal_open ON proposal (kind, name) WHERE state = 'open';

-- The last good output of every workflow, if it is not too large: what the self-test makes bad.
CREATE TABLE good_output (
    workflow TEXT PRIMARY KEY,
    run_id INTEGER NOT NULL,
    path TEXT NOT NULL,
    sha256 TEXT NOT NULL,
    mtime_ns INTEGER NOT NULL,
    judged_as_of REAL NOT NULL,         -- the time that its age was taken at
    names TEXT NOT NULL,                -- JSON: verification.Names
    data BLOB NOT NULL                  -- the file's bytes
) STRICT;

CREATE TABLE selftest (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    workflow TEXT NOT NULL,
    pin_id INTEGER,                     -- the pin that was in force
    made_of TEXT NOT NULL,              -- output, specification, nothing
    result TEXT NOT NULL,               -- JSON: verification.Trials
    at REAL NOT NULL
) STRICT;
CREATE INDEX selftest_by_workflow ON selftest (workflow, id);
CREATE INDEX selftest_by_at ON selftest (at);

-- When nobody watched: the bot was away, or the machine asleep.
CREATE TABLE absence (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    since REAL NOT NULL,
    until REAL NOT NULL
) STRICT;
CREATE INDEX absence_by_until ON absence (until);

-- What the chat was told of a week, or of what somebody has asked for: a page is turned in it.
CREATE TABLE digest (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    week TEXT UNIQUE,                   -- such as 2026-W48; NULL: asked for
    until REAL NOT NULL,                -- the slot that ended it
    body TEXT,                          -- JSON: digest.Digest; NULL: the week before the first one, told to nobody
    at REAL NOT NULL
) STRICT;
CREATE INDEX digest_by_until ON digest (until);

-- What became of the runs of a week that is over, kept for longer than the verdicts.
CREATE TABLE run_figure (
    workflow TEXT NOT NULL,
    week TEXT NOT NULL,
    passed INTEGER NOT NULL,
    failed INTEGER NOT NULL,
    missing INTEGER NOT NULL,
    says_failed INTEGER NOT NULL,       -- of those that passed: they say themselves that they failed
    said_done INTEGER NOT NULL,         -- they failed and had said that they were done
    failed_tries INTEGER NOT NULL,      -- what runs had failed with before they left something else
    PRIMARY KEY (workflow, week)
) STRICT, WITHOUT ROWID;
CREATE TABLE check_figure (
    workflow TEXT NOT NULL,
    week TEXT NOT NULL,
    check_name TEXT NOT NULL,
    passed INTEGER NOT NULL,
    failed INTEGER NOT NULL,
    not_reached INTEGER NOT NULL,
    PRIMARY KEY (workflow, week, check_name)
) STRICT, WITHOUT ROWID;

-- What a digest counts without decoding `judged`.
ALTER TABLE verdict ADD COLUMN ran_at REAL NOT NULL DEFAULT 0;       -- when its run was first judged
ALTER TABLE verdict ADD COLUMN checks TEXT NOT NULL DEFAULT '';      -- those that were asked for, in order, with a space between
ALTER TABLE verdict ADD COLUMN said_done INTEGER NOT NULL DEFAULT 0;
ALTER TABLE verdict ADD COLUMN failed_tries INTEGER NOT NULL DEFAULT 0; -- of its run before it; unknown of older ones
ALTER TABLE verdict ADD COLUMN is_newest INTEGER NOT NULL DEFAULT 1; -- of its run: the one that counts
-- `judged` is decoded once for all of the ten checks that there are: json_each takes six times as long.
UPDATE verdict SET
    ran_at = coalesce((SELECT run.at FROM run WHERE run.id = verdict.run_id), at),
    checks = trim(replace(replace(replace(json_extract(judged,
        '$.verdict.results[0].check', '$.verdict.results[1].check', '$.verdict.results[2].check',
        '$.verdict.results[3].check', '$.verdict.results[4].check', '$.verdict.results[5].check',
        '$.verdict.results[6].check', '$.verdict.results[7].check', '$.verdict.results[8].check',
        '$.verdict.results[9].check'
    ), ',null', ''), 'null', ''), '","', ' '), '[]"'),
    said_done = json_extract(judged, '$.verdict.said_done') IS NOT NULL,
    is_newest = NOT EXISTS (SELECT 1 FROM verdict v WHERE v.run_id = verdict.run_id AND v.id > verdict.id);
-- With `is_newest` among its columns: SQLite looks at it again, and would look at the row for it.
CREATE INDEX verdict_figures ON verdict (
    ran_at, workflow, outcome, failed_check, checks, says_failed, said_done, failed_tries, is_newest
) WHERE is_newest;

-- What is about a stop goes before alarms, which have a rank of their own now: 2 is a stop's, 1 an alarm's.
UPDATE outbox SET urgent = 2 WHERE urgent = 1 AND state IN ('queued', 'sending');
