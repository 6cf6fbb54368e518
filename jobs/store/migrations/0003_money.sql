-- What incidents have cost, in billionths of a unit of the currency; NULL where that is not known.
ALTER TABLE incident ADD COLUMN cost_before INTEGER;
ALTER TABLE incident ADD COLUMN cost INTEGER;
ALTER TABLE incident ADD COLUMN currency TEXT;

-- Of the money that its memory counts.
ALTER TABLE session ADD COLUMN currency TEXT;
