-- The first statement of the transaction that writes what the lock protects.
--   ?1: the key of the lock, ?2: the token of the writer
-- One row: the token counts, write on and commit. No row: it is stale, a successor has been here;
-- roll back and write nothing. Begin the transaction with BEGIN IMMEDIATE, so that nobody comes
-- between this statement and those behind it.
INSERT INTO fence (key, token) VALUES (?1, ?2)
ON CONFLICT (key) DO UPDATE SET token = excluded.token WHERE fence.token <= excluded.token
RETURNING token;
