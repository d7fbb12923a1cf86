-- The first rejects of each stage and reason, how many there are, and the words and the document that they are about.
WITH shown AS (
    SELECT *, count(*) OVER (PARTITION BY stage, reason) AS "count" FROM rejects
    WHERE stage <> 'ingest'
    QUALIFY row_number() OVER (PARTITION BY stage, reason ORDER BY reject_id) <= $most
),
stated AS (
    SELECT row_key, min(raw_triple_id) AS raw_triple_id FROM (
        SELECT raw_triple_id AS row_key, raw_triple_id FROM raw_triples
        UNION ALL SELECT triple_id, raw_triple_ids[1] FROM triples
    ) SEMI JOIN shown USING (row_key) GROUP BY row_key
),
places AS (
    SELECT row_key, chunk_id, spans[1] AS span
    FROM stated JOIN raw_triples USING (raw_triple_id) JOIN claims USING (claim_id, chunk_id)
)
SELECT stage, reason, "count", source, least(offset_of, $before) AS place,
    regexp_replace(detail, '^characters \d+-\d+: ', '') AS detail,
    substring(text, span.start + 1, span."end" - span.start) AS sentence,
    substring(text, greatest(offset_of - $before, 0) + 1, $before + $after) AS passage
FROM (
    SELECT shown.*, documents.source, documents.text, places.span,
        try_cast(regexp_extract(shown.detail, '^characters (\d+)-', 1) AS BIGINT) AS offset_of
    FROM shown LEFT JOIN places USING (row_key)
    LEFT JOIN chunks AS cut ON cut.chunk_id = coalesce(shown.chunk_id, places.chunk_id)
    LEFT JOIN documents ON documents.document_id = coalesce(shown.document_id, cut.document_id)
)
ORDER BY stage, reason, reject_id
