-- Accepted proposals, then open ones, the best first, at the median of their facts' phrases.
WITH frame AS (
    SELECT ($size - 16) / greatest(max(x) - min(x), max(y) - min(y), 1e-9) AS unit,
        (min(x) + max(x)) / 2 AS middle_x, (min(y) + max(y)) / 2 AS middle_y
    FROM phrases
),
facts AS (
    SELECT proposal_id, label, state, score, unnest(triple_ids) AS triple_id
    FROM proposals WHERE state IN ('accepted', 'open')
)
SELECT label, $size / 2 + (median(x) - any_value(middle_x)) * any_value(unit) AS x,
    $size / 2 - (median(y) - any_value(middle_y)) * any_value(unit) AS y
FROM facts JOIN priorities USING (triple_id) JOIN phrases USING (phrase_id) CROSS JOIN frame
GROUP BY proposal_id, label, state, score ORDER BY state, score DESC, proposal_id LIMIT $most
