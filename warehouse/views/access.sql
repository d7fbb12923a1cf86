-- Who may read what: each chunk, triple, condensed fact and instance with the labels of every document that states as much.
CREATE OR REPLACE VIEW access AS
WITH triple_chunks AS (
    SELECT triple_id, raw_triples.chunk_id
    FROM (SELECT triple_id, unnest(raw_triple_ids) AS raw_triple_id FROM triples)
    JOIN raw_triples USING (raw_triple_id)
),
derivations_flat AS (
    SELECT condensed_id, unnest(derived_from) AS triple_id, unnest(how) AS how
    FROM condensed
),
stated AS (
    SELECT 'chunks' AS owner_table, chunk_id AS owner_id, chunk_id
    FROM chunks
    UNION ALL
    SELECT 'triples', triple_id, chunk_id
    FROM triple_chunks
    UNION ALL
    SELECT 'condensed', condensed_id, chunk_id
    FROM derivations_flat
    JOIN triple_chunks USING (triple_id)
    WHERE how <> 'broader'
    UNION ALL
    SELECT 'instances', instance_id, place.chunk_id
    FROM (SELECT instance_id, unnest(places) AS place FROM instances)
)
SELECT DISTINCT stated.owner_table, stated.owner_id, documents.document_id, documents.access
FROM stated
JOIN chunks USING (chunk_id)
JOIN documents USING (document_id)
ORDER BY ALL;
