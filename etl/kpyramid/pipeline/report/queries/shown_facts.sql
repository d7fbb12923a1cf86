-- Of each thing with a name its surest fact, of those near a property if there are any; things with most facts first.
WITH weights AS (SELECT head_id, count(*) AS facts FROM condensed GROUP BY head_id),
best AS (
    SELECT condensed.head_id,
        arg_max(triple_id, (anchor IS NOT NULL, confidence, condensed_id)) AS triple_id
    FROM condensed JOIN triples ON triple_id = derived_from[1]
    JOIN entities AS heads ON heads.entity_id = condensed.head_id
    LEFT JOIN entities AS tails ON tails.entity_id = condensed.tail_id
    WHERE NOT condensed.negated AND more_detailed_id IS NULL AND heads.type <> 'NOUN'
        AND coalesce(tails.type, '') <> 'NOUN'
    GROUP BY ALL
)
SELECT triple_id FROM best JOIN weights USING (head_id) ORDER BY facts DESC, triple_id LIMIT $most
