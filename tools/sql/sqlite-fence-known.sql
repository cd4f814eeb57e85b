-- As sqlite-fence.sql, where only locks that are in the table already may write: no row is made.
--   ?1: the key of the lock, ?2: the token of the writer
-- No row: the token is stale, or the key is not known.
UPDATE fence SET token = ?2 WHERE key = ?1 AND token <= ?2
RETURNING token;
