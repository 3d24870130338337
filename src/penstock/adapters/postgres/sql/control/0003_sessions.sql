-- A browser that signed in with a token holds a session in its place. The hash of it is kept beside that of the token.

ALTER TABLE control_token ADD COLUMN session text;

CREATE UNIQUE INDEX control_token_by_session ON control_token (session) WHERE session IS NOT NULL;
