-- What is said of "us", which `extract.author` makes facts.
SELECT count(*) AS rejects
FROM rejects
WHERE reason = 'unresolved_pronoun' AND regexp_matches(detail, ': ([Ww]e|[Oo]urs?|[Uu]s)$')
