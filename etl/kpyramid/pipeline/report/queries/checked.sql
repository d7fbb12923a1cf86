SELECT
    (SELECT count(*) FROM raw_triples) AS facts,
    (SELECT count(*) FROM raw_triples WHERE verdict = 'stated') AS stated,
    (SELECT count(*) FROM raw_triples WHERE verdict = 'partly') AS partly,
    (SELECT count(*) FROM rejects WHERE stage = 'extract' AND reason = 'not_stated') AS not_stated
