-- For each triple the condensed fact that it stands in, and why.
CREATE OR REPLACE VIEW derivations AS
SELECT
    unnest(derived_from) AS triple_id,
    condensed_id,
    unnest(how) AS how
FROM condensed
ORDER BY triple_id;
