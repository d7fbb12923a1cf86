-- The first proposals of each state, with the first of their triples as examples.
SELECT * EXCLUDE (triple_ids), triple_ids[:$few] AS examples
FROM proposals
QUALIFY row_number() OVER (PARTITION BY state ORDER BY round, score DESC, proposal_id) <= $most
ORDER BY round, score DESC, proposal_id
