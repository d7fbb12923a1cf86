-- Where each triple is stated: what qualifies it there, its claims, their chunk and document, every span with its text.
CREATE OR REPLACE VIEW evidence AS
WITH statements AS (
    SELECT triple_id, head_id, relation_id, tail_id, literal, negated, unnest(raw_triple_ids) AS raw_triple_id
    FROM triples
),
places AS (
    SELECT claim_id, text AS claim, unnest(spans) AS span
    FROM claims
)
SELECT
    statements.triple_id,
    heads.name AS head,
    relations.name AS relation,
    coalesce(tails.name, statements.literal) AS tail,
    statements.raw_triple_id,
    statements.negated,
    raw_triples.qualifiers,
    raw_triples.confidence,
    places.claim_id,
    places.claim,
    chunks.chunk_id,
    documents.document_id,
    documents.source,
    places.span.start AS "start",
    places.span."end" AS "end",
    substring(
        documents.text, places.span.start + 1, places.span."end" - places.span.start
    ) AS text
FROM statements
JOIN raw_triples USING (raw_triple_id)
JOIN places ON places.claim_id = raw_triples.claim_id
JOIN chunks ON chunks.chunk_id = raw_triples.chunk_id
JOIN documents ON documents.document_id = chunks.document_id
JOIN entities AS heads ON heads.entity_id = statements.head_id
JOIN relations ON relations.relation_id = statements.relation_id
LEFT JOIN entities AS tails ON tails.entity_id = statements.tail_id
ORDER BY statements.triple_id, statements.raw_triple_id, places.span.start, places.span."end";
