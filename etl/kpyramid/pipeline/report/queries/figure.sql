-- Phrases by panel and layer: their number, the first of them as dots, and of both layers the Gaussian as the matrix of a circle.
WITH used AS (
    -- Whether facts that were kept of a phrase are linked to an anchor, or near none.
    SELECT phrase_id, bool_or(anchor IS NOT NULL) AS linked, bool_or(anchor IS NULL) AS free
    FROM derivations JOIN condensed USING (condensed_id) JOIN priorities USING (triple_id)
    WHERE derivations.how = 'kept' GROUP BY phrase_id
),
frame AS (
    SELECT ($size - 16) / greatest(max(x) - min(x), max(y) - min(y), 1e-9) AS unit,
        (min(x) + max(x)) / 2 AS middle_x, (min(y) + max(y)) / 2 AS middle_y
    FROM phrases
),
placed AS (
    -- Pixels; the second axis points upwards.
    SELECT phrase_id, layer = 'graph' AS is_graph, region, coalesce(linked, false) AS linked,
        coalesce(free, false) AS free,
        $size / 2 + (x - middle_x) * unit AS x, $size / 2 - (y - middle_y) * unit AS y
    FROM phrases LEFT JOIN used USING (phrase_id) CROSS JOIN frame
),
members AS (
    SELECT 0 AS panel, CASE WHEN is_graph THEN 0 ELSE 1 END AS layer, * FROM placed
    UNION ALL SELECT 1, CASE WHEN region THEN 1 ELSE 0 END, * FROM placed WHERE is_graph
    UNION ALL SELECT 2, 0, * FROM placed WHERE is_graph AND free
    UNION ALL SELECT 2, 1, * FROM placed WHERE is_graph AND linked
),
ranked AS (
    SELECT *, row_number() OVER (PARTITION BY panel, layer ORDER BY phrase_id) AS number,
        'M' || round(x, 1) || ' ' || round(y, 1) || 'h0' AS dot
    FROM members
)
SELECT panel, layer, count(*) AS phrases,
    string_agg(DISTINCT dot, '' ORDER BY dot) FILTER (number <= $most) AS dots,
    avg(x) AS x, avg(y) AS y, sqrt(var_pop(x)) AS a,
    coalesce(covar_pop(x, y) / nullif(sqrt(var_pop(x)), 0), 0) AS b,
    sqrt(greatest(var_pop(y) - coalesce(covar_pop(x, y) ^ 2 / nullif(var_pop(x), 0), 0), 0)) AS c
FROM ranked GROUP BY panel, layer ORDER BY panel, layer
