-- name: find
-- An equal result, and whether all of it is still as it was written: the server looks at every piece, nothing is sent.
SELECT b.id, coalesce(p.size, 0) = b.size AND coalesce(p.is_whole, true)
FROM result_blob AS b,
LATERAL (
  SELECT sum(octet_length(body)) AS size, bool_and(sha256(body) = digest) AS is_whole
  FROM result_piece WHERE blob = b.id
) AS p
WHERE b.digest = %s;

-- name: make_young
-- The result has been put again.
UPDATE result_blob SET seen = clock_timestamp() WHERE id = %s RETURNING id;

-- name: delete_damaged
-- What cannot be used makes room for what is put now.
DELETE FROM result_blob WHERE id = %s;

-- name: next_id
-- The number under which the pieces are written before their result is known to the others.
SELECT nextval(pg_get_serial_sequence('result_blob', 'id'));

-- name: write_pieces
-- The pieces of one result.
COPY result_piece (blob, number, body, digest) FROM STDIN (FORMAT BINARY);

-- name: create
-- Make a written result known, unless an equal one has been in the meantime.
INSERT INTO result_blob (id, digest, size, seen) VALUES (%s, %s, %s, clock_timestamp())
ON CONFLICT (digest) DO NOTHING
RETURNING id;

-- name: open
-- Where the pieces of a result are.
SELECT id FROM result_blob WHERE digest = %s;

-- name: read_pieces
-- The next pieces of a result in their order.
SELECT number, body FROM result_piece WHERE blob = %s AND number > %s ORDER BY number LIMIT %s;

-- name: seen
-- When a result was last put.
SELECT extract(epoch FROM seen)::float8 FROM result_blob WHERE digest = %s;

-- name: size
-- How many bytes a result has.
SELECT size FROM result_blob WHERE digest = %s;

-- name: older
-- The next results that were last put before a moment, in the order of their numbers.
SELECT id, digest, extract(epoch FROM seen)::float8
FROM result_blob
WHERE id > %s AND extract(epoch FROM seen)::float8 < %s
ORDER BY id
LIMIT %s;

-- name: delete
-- A result and, by cascade, its pieces.
DELETE FROM result_blob WHERE digest = %s;

-- name: delete_unless_put_again
-- The same, but not when it has been put again since somebody looked.
DELETE FROM result_blob WHERE digest = %s AND extract(epoch FROM seen)::float8 <= %s;
