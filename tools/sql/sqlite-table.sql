-- The table of fencing tokens, beside the tables that a lock protects: one row for each lock that has
-- ever written. SQLite 3.35 or later.
--
-- key:   names the lock, the same way for every writer. Take the lease id (k:... of 66 bytes,
--        LEASEHOLD_LEASE_ID); a canonical key has up to 7691.
-- token: the highest that has written. Rows are never deleted while a holder may still write: a
--        table that has forgotten a token accepts the oldest holder.
CREATE TABLE IF NOT EXISTS fence (
  key   TEXT NOT NULL PRIMARY KEY CHECK (key <> ''),
  token INTEGER NOT NULL CHECK (typeof(token) = 'integer' AND token > 0)
) WITHOUT ROWID;
