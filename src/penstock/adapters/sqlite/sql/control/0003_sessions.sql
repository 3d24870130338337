-- A browser that signed in with a token holds a session in its place. The hash of it is kept beside that of the token.

ALTER TABLE token ADD COLUMN session TEXT;

CREATE UNIQUE INDEX token_by_session ON token (session) WHERE session IS NOT NULL;
