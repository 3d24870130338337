-- What documents keep between runs: values of their own, and the watermarks of their readers. As JSON text.
-- `lost_run` ended with `lost_value` after another run had changed the value, so that it was not taken.

CREATE TABLE kept (
  document TEXT NOT NULL CHECK (document <> ''),
  kind TEXT NOT NULL CHECK (kind IN ('value', 'watermark')),
  key TEXT NOT NULL,
  value TEXT NOT NULL,
  run TEXT,
  changed_at REAL NOT NULL,
  lost_run TEXT,
  lost_value TEXT NOT NULL,
  PRIMARY KEY (document, kind, key)
) WITHOUT ROWID;
