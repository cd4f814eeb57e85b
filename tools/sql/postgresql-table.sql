-- The table of fencing tokens, beside the tables that a lock protects: one row for each lock that has
-- ever written. PostgreSQL 9.5 or later.
--
-- key:   names the lock, the same way for every writer. Take the lease id (k:... of 66 bytes,
--        LEASEHOLD_LEASE_ID); a canonical key has up to 7691, and PostgreSQL refuses to index a text
--        of more than about 2700.
-- token: the highest that has written. Rows are never deleted while a holder may still write: a
--        table that has forgotten a token accepts the oldest holder.
CREATE TABLE IF NOT EXISTS fence (
  key   text PRIMARY KEY CHECK (key <> ''),
  token bigint NOT NULL CHECK (token > 0)
);
