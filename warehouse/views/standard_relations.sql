-- Each standard relation: its facts, how many of them are distinct (not told in more detail by another), the things that have it, and its wordings, the commonest first; denials are left out.
CREATE OR REPLACE VIEW standard_relations AS
WITH said AS (
    SELECT standard_relation, name, count(*) AS times
    FROM condensed
    JOIN relations USING (relation_id)
    WHERE NOT negated
    GROUP BY ALL
)
SELECT
    standard_relation,
    count(*) AS facts,
    count(*) FILTER (more_detailed_id IS NULL) AS distinct_facts,
    count(DISTINCT standard_head_id) AS subjects,
    any_value(wordings) AS wordings
FROM condensed
JOIN (
    SELECT standard_relation, list(name ORDER BY times DESC, name) AS wordings
    FROM said
    GROUP BY standard_relation
) USING (standard_relation)
WHERE NOT negated
GROUP BY standard_relation
ORDER BY facts DESC, standard_relation;
