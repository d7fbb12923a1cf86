-- Where each condensed fact is stated: its standard relation with names, whether it is denied, and every span with its text, document, source and title; how says as which kind of the fact each triple counts.
CREATE OR REPLACE VIEW evidence_of_facts AS
SELECT DISTINCT
    parts.condensed_id,
    heads.name AS head,
    parts.standard_relation AS relation,
    coalesce(tails.name, parts.literal) AS tail,
    parts.negated,
    parts.how,
    evidence.document_id,
    evidence.source,
    documents.title,
    evidence.chunk_id,
    evidence."start",
    evidence."end",
    evidence.text
FROM (
    SELECT condensed_id, standard_head_id, standard_relation, standard_tail_id, literal, negated,
        unnest(derived_from) AS triple_id, unnest(how) AS how
    FROM condensed
) AS parts
JOIN evidence USING (triple_id)
JOIN documents USING (document_id)
JOIN entities AS heads ON heads.entity_id = parts.standard_head_id
LEFT JOIN entities AS tails ON tails.entity_id = parts.standard_tail_id
ORDER BY ALL;
