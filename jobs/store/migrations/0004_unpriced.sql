-- Tokens of the session that no price is known of: with any, the incident's money may be too little.
ALTER TABLE incident ADD COLUMN unpriced INTEGER NOT NULL DEFAULT 0;
