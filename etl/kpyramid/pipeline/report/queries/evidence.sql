-- Triples in words, each with the text of its surest statement and its source.
WITH wanted AS (FROM triples WHERE triple_id IN (SELECT unnest($keys))),
stated AS (SELECT triple_id, unnest(raw_triple_ids) AS raw_triple_id FROM wanted),
places AS (SELECT claim_id, unnest(spans) AS span FROM claims)
SELECT DISTINCT ON (triple_id) triple_id, heads.name AS head, relations.name AS relation,
    coalesce(tails.name, wanted.literal) AS tail, wanted.qualifiers, wanted.confidence,
    wanted.negated,
    substring(documents.text, span.start + 1, span."end" - span.start) AS text, source,
    len(raw_triple_ids) AS places
FROM wanted JOIN stated USING (triple_id)
JOIN raw_triples USING (raw_triple_id)
JOIN places USING (claim_id)
JOIN chunks USING (chunk_id)
JOIN documents USING (document_id)
JOIN entities AS heads ON heads.entity_id = wanted.head_id
JOIN relations USING (relation_id)
LEFT JOIN entities AS tails ON tails.entity_id = wanted.tail_id
ORDER BY triple_id, raw_triples.confidence DESC, raw_triple_id, span.start DESC
