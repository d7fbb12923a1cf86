-- Numbers of facts before and after condensation.
SELECT
    coalesce(sum(len(derived_from)), 0)::BIGINT AS triples,
    count(*) AS condensed,
    count(*) FILTER (len(derived_from) > 1) AS merged_into,
    count(anchor) AS anchored
FROM condensed
