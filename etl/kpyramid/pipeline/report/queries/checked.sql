SELECT
    (SELECT count(*) FROM raw_triples WHERE producer <> 'rules') AS facts,
    (SELECT count(*) FROM raw_triples WHERE producer = 'rules') AS by_rules,
    (SELECT count(*) FROM raw_triples WHERE verdict = 'stated') AS stated,
    (SELECT count(*) FROM raw_triples WHERE verdict = 'partly') AS partly,
    (SELECT count(*) FROM rejects WHERE stage = 'extract' AND reason = 'not_stated') AS not_stated,
    (
        SELECT count(DISTINCT row_key) FROM rejects
        WHERE stage = 'extract' AND starts_with(reason, 'llm_') AND starts_with(detail, 'check: ')
    ) AS unanswered
