-- The condensed graph with names in place of ids, and how many triples each fact stands for.
CREATE OR REPLACE VIEW facts AS
SELECT
    condensed.condensed_id,
    heads.name AS head,
    relations.name AS relation,
    coalesce(tails.name, condensed.literal) AS tail,
    condensed.anchor,
    len(condensed.derived_from) AS source_triples
FROM condensed
JOIN entities AS heads ON heads.entity_id = condensed.head_id
JOIN relations USING (relation_id)
LEFT JOIN entities AS tails ON tails.entity_id = condensed.tail_id
ORDER BY condensed.condensed_id;
