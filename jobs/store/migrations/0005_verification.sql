-- Every workflow that was ever watched, and how it stands.
CREATE TABLE workflow (
    id INTEGER PRIMARY KEY AUTOINCREMENT, -- for buttons, whose data is short
    name TEXT NOT NULL UNIQUE,
    since REAL NOT NULL,                -- when it was first watched: nothing before is missing
    seen TEXT,                          -- JSON: verification.Sighting, the output that was verified or found at first
    judged_until REAL NOT NULL,         -- slots up to this time have been judged
    last_run INTEGER,                   -- the newest run that was verified, or is missing
    ends TEXT NOT NULL,                 -- JSON: verification.Ends, of the sessions whose end is a run's
    failures INTEGER NOT NULL,          -- runs in a row without a good output
    alerted_run INTEGER,                -- whose alert is open
    silenced_until REAL
) STRICT;

-- Runs to be verified: reported by a program, a person or the watcher, and not yet judged.
CREATE TABLE report (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    workflow TEXT NOT NULL,
    by TEXT NOT NULL,
    reported TEXT,                      -- the reporter's own id of the run
    run_id INTEGER,                     -- to be judged again
    slot REAL,
    as_of REAL,                         -- when it came, if that was while nobody watched
    said TEXT,                          -- what the reporter says of it, cut
    answer TEXT,                        -- JSON: where a person waits for the verdict
    at REAL NOT NULL
) STRICT;

CREATE TABLE run (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    workflow TEXT NOT NULL,
    key TEXT NOT NULL,                  -- what tells it from the workflow's other runs
    slot REAL,                          -- when it was due
    reported TEXT,
    at REAL NOT NULL,
    UNIQUE (workflow, key)
) STRICT;
CREATE INDEX run_by_at ON run (at);

CREATE TABLE verdict (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    run_id INTEGER NOT NULL REFERENCES run (id),
    workflow TEXT NOT NULL,
    by TEXT NOT NULL,
    outcome TEXT NOT NULL,
    says_failed INTEGER NOT NULL,
    failed_check TEXT,                  -- the check that decided
    judged TEXT NOT NULL,               -- JSON: verification.Judged
    at REAL NOT NULL,
    took REAL NOT NULL,
    as_of REAL                          -- when the output came, if its age was judged as of then
) STRICT;
CREATE INDEX verdict_by_run ON verdict (run_id, id);
CREATE INDEX verdict_by_workflow ON verdict (workflow, id);
CREATE INDEX verdict_by_outcome ON verdict (outcome, id);
CREATE INDEX verdict_by_workflow_and_outcome ON verdict (workflow, outcome, id);
CREATE INDEX verdict_by_at ON verdict (at);
