-- What documents keep between runs: values of their own, and the watermarks of their readers. As JSON text.
-- `lost_run` ended with `lost_value` after another run had changed the value, so that it was not taken.

CREATE TABLE kept (
  document text COLLATE "C" NOT NULL CHECK (document <> ''),
  kind text COLLATE "C" NOT NULL CHECK (kind IN ('value', 'watermark')),
  key text COLLATE "C" NOT NULL,
  value text NOT NULL,
  run text,
  changed_at float8 NOT NULL,
  lost_run text,
  lost_value text NOT NULL,
  PRIMARY KEY (document, kind, key)
);
