-- The merges of most different wordings; of merges of the same wordings the first.
WITH merges AS (
    SELECT condensed_id, list_sort(list(DISTINCT relation_id)) AS wordings
    FROM derivations JOIN triples USING (triple_id)
    GROUP BY condensed_id HAVING count(*) > 1
)
SELECT min(condensed_id) AS condensed_id FROM merges
GROUP BY wordings ORDER BY len(wordings) DESC, condensed_id LIMIT $most
