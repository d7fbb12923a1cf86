-- The condensed graph with names in place of ids, its standard relations, what qualifies each fact, a fact that says the same in more detail (count distinct facts where there is none), the confidence of its surest triple, and how many triples it stands for.
CREATE OR REPLACE VIEW facts AS
WITH weights AS (
    SELECT condensed_id, max(triples.confidence) AS confidence
    FROM (SELECT condensed_id, unnest(derived_from) AS triple_id FROM condensed)
    JOIN triples USING (triple_id)
    GROUP BY condensed_id
)
SELECT
    condensed.condensed_id,
    heads.name AS head,
    relations.name AS relation,
    relation_id,
    coalesce(tails.name, condensed.literal) AS tail,
    standard_heads.name AS standard_head,
    condensed.standard_relation,
    coalesce(standard_tails.name, condensed.literal) AS standard_tail,
    condensed.standard_turned,
    condensed.negated,
    condensed.modality,
    condensed.valid_from,
    condensed.valid_to,
    condensed.qualifiers,
    weights.confidence,
    condensed.more_detailed_id,
    condensed.anchor,
    len(condensed.derived_from) AS source_triples
FROM condensed
JOIN weights USING (condensed_id)
JOIN entities AS heads ON heads.entity_id = condensed.head_id
JOIN relations USING (relation_id)
LEFT JOIN entities AS tails ON tails.entity_id = condensed.tail_id
JOIN entities AS standard_heads ON standard_heads.entity_id = condensed.standard_head_id
LEFT JOIN entities AS standard_tails ON standard_tails.entity_id = condensed.standard_tail_id
ORDER BY condensed.condensed_id;
