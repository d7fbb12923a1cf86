-- The columns of the index for DuckDB: a query for each of its files, in the order of their columns. Each
-- table has a column `row`, its place in the order of its key, by which rows refer to each other.

--- rests: what rests on what, by rows
CREATE TEMP TABLE chunk AS SELECT chunk_id, chunks.row, documents.row AS document, crc32(document_id) AS hash
FROM chunks JOIN documents USING (document_id);

CREATE TEMP TABLE stated AS SELECT triples.* EXCLUDE (raw_triple_id), document, hash, claim_id, qualifiers,
    raw_triples.head AS head_form, raw_triples.relation AS relation_form, raw_triples.tail AS tail_form
FROM (SELECT row AS triple, head_id, relation_id, tail_id, confidence, unnest(raw_triple_ids) AS raw_triple_id
    FROM triples) AS triples JOIN raw_triples USING (raw_triple_id) JOIN chunk USING (chunk_id);

CREATE TEMP TABLE derived AS SELECT fact, triples.row AS triple, how <> '$weaker' AS as_much
FROM (SELECT row AS fact, unnest(derived_from) AS triple_id, unnest(how) AS how FROM condensed)
JOIN triples USING (triple_id);

CREATE TEMP TABLE about AS SELECT entities.row AS entity, fact, negated
FROM (SELECT row AS fact, negated, unnest([head_id, tail_id]) AS entity_id FROM condensed)
JOIN entities USING (entity_id);

--- groups: of what is embedded the least hash of the documents it rests on
CREATE TEMP TABLE of_triple AS SELECT triple, min(hash) AS hash FROM stated GROUP BY triple;
CREATE TEMP TABLE of_fact AS SELECT fact, min(hash) AS hash FROM derived JOIN of_triple USING (triple) GROUP BY fact;
CREATE TEMP TABLE of_row AS
SELECT 'chunks' AS name, row, hash FROM chunk UNION ALL SELECT 'triples', triple, hash FROM of_triple
UNION ALL SELECT 'condensed', fact, hash FROM of_fact
UNION ALL SELECT 'entities', entity, min(hash) FROM about JOIN of_fact USING (fact) GROUP BY entity
UNION ALL SELECT 'instances', instances.row, hash FROM instances JOIN chunk USING (chunk_id);

--- names: of entities, in the form in which questions have them
CREATE TEMP TABLE called AS SELECT DISTINCT row, join_words(form) AS name
FROM (SELECT row, unnest(surface_forms) AS form FROM entities) WHERE join_words(form) <> '';

--- file_documents: with headings and levels, and where which page begins; `columns` adds texts
SELECT document_id, source, title, NULL AS text, access, metadata,
    coalesce(list_transform(list_filter(blocks, lambda b: b.kind = 'heading'),
        lambda b: {'start': b.start, 'end': b."end", 'level': b.level}), []) AS headings,
    coalesce(list_transform(list_filter(blocks, lambda b, i: b.page > 0 AND (i = 1 OR b.page <> blocks[i - 1].page)),
        lambda b: {'start': b.start, 'page': b.page}), []) AS pages
FROM documents ORDER BY row

--- file_chunks: as they are
SELECT chunk_id, document::INT AS document, start, "end" FROM chunks JOIN chunk USING (chunk_id)
ORDER BY chunks.row

--- file_mentions: in the order of their chunks
SELECT chunk.row::INT AS chunk, mention_id, text, type, start, "end" FROM mentions JOIN chunk USING (chunk_id)
ORDER BY chunk, mentions.row

--- file_condensed: with the documents that say as much, and all places, of antecedents last
WITH best AS (SELECT fact, max(confidence) AS confidence, list(DISTINCT document ORDER BY document)
        FILTER (as_much) AS documents FROM derived JOIN stated USING (triple) GROUP BY fact),
    span AS (SELECT claim_id, chunk.row AS chunk, span, nth < size AS aside FROM (SELECT claim_id, chunk_id,
        unnest(spans) AS span, generate_subscripts(spans, 1) AS nth, len(spans) AS size FROM claims)
        JOIN chunk USING (chunk_id)),
    place AS (SELECT fact, chunk, span, bool_and(aside) AS aside FROM (SELECT DISTINCT fact, claim_id
        FROM derived JOIN stated USING (triple)) JOIN span USING (claim_id) GROUP BY ALL),
    placed AS (SELECT fact, list({'chunk': chunk, 'span': span} ORDER BY aside, chunk, span.start, span."end")
        AS places FROM place GROUP BY fact),
    cited AS (SELECT condensed_id, max(row) AS statement
        FROM (SELECT row, unnest(condensed_ids) AS condensed_id FROM statements) GROUP BY condensed_id)
SELECT condensed.condensed_id, heads.row::INT AS head, relations.row::INT AS relation,
    coalesce(tails.row, -1)::INT AS tail, condensed.literal, condensed.standard_relation AS standard,
    ends.row::INT AS standard_head, coalesce(others.row, -1)::INT AS standard_tail,
    coalesce(statement, -1)::INT AS statement, coalesce(more.row, -1)::INT AS detailed,
    condensed.qualifiers, condensed.negated, condensed.modality, coalesce(confidence, 0) AS confidence,
    coalesce(documents, [])::INT[] AS documents,
    coalesce(list_transform(places, lambda p: p.chunk), [])::INT[] AS place_chunks,
    coalesce(list_transform(places, lambda p: p.span.start), []) AS place_starts,
    coalesce(list_transform(places, lambda p: p.span."end"), []) AS place_ends
FROM condensed JOIN relations USING (relation_id) JOIN entities AS heads ON heads.entity_id = head_id
JOIN entities AS ends ON ends.entity_id = standard_head_id
LEFT JOIN entities AS tails ON tails.entity_id = tail_id
LEFT JOIN entities AS others ON others.entity_id = standard_tail_id
LEFT JOIN condensed AS more ON more.condensed_id = condensed.more_detailed_id
LEFT JOIN cited ON cited.condensed_id = condensed.condensed_id
LEFT JOIN best ON best.fact = condensed.row LEFT JOIN placed ON placed.fact = condensed.row
ORDER BY condensed.row

--- file_relations: as they are
SELECT relation_id, name FROM relations ORDER BY row

--- file_entities: with their names, and the rows of facts, denials and values
WITH named AS (SELECT row, list(name ORDER BY name) AS names FROM called GROUP BY row),
    facts AS (SELECT entity AS row, list(DISTINCT fact ORDER BY fact) FILTER (NOT negated) AS facts,
        list(DISTINCT fact ORDER BY fact) FILTER (negated) AS denials FROM about GROUP BY entity),
    valued AS (SELECT entity_id, list(DISTINCT row ORDER BY row) AS instances FROM
        (SELECT row, unnest([subject_id, object_id]) AS entity_id FROM instances) GROUP BY entity_id)
SELECT entity_id, name, type, surface_forms, coalesce(names, []) AS names, coalesce(facts, [])::INT[] AS facts,
    coalesce(denials, [])::INT[] AS denials, coalesce(instances, [])::INT[] AS instances
FROM entities LEFT JOIN named USING (row) LEFT JOIN facts USING (row) LEFT JOIN valued USING (entity_id)
ORDER BY row

--- file_instances: with the documents that they are read from, and the facts
WITH places AS (SELECT row, list(DISTINCT document ORDER BY document) AS documents FROM (SELECT place.row,
            coalesce(document, error('table instances: places name no chunk ' || chunk_id)) AS document
        FROM (SELECT row, unnest(places).chunk_id AS chunk_id FROM instances) AS place LEFT JOIN chunk
        USING (chunk_id)) GROUP BY row),
    rests AS (SELECT value.row, list(DISTINCT fact ORDER BY fact) AS facts
        FROM (SELECT row, unnest(triple_ids) AS triple_id FROM instances) AS value JOIN triples USING (triple_id)
        JOIN derived ON triple = triples.row GROUP BY value.row)
SELECT instances.* EXCLUDE (row), coalesce(documents, [])::INT[] AS documents, coalesce(facts, [])::INT[] AS facts
FROM instances LEFT JOIN places USING (row) LEFT JOIN rests USING (row) ORDER BY row

--- file_statements: with the facts that they cite
SELECT statement_id, text, anchor, coalesce(facts, [])::INT[] AS facts FROM statements LEFT JOIN
    (SELECT citing.row, list(condensed.row ORDER BY nth) AS facts FROM (SELECT row, unnest(condensed_ids) AS
        condensed_id, generate_subscripts(condensed_ids, 1) AS nth FROM statements) AS citing
    JOIN condensed USING (condensed_id) GROUP BY citing.row) USING (row) ORDER BY row

--- file_qualifiers: of condensed facts, in words, each with the documents that say so
SELECT owner::INT AS owner, form, list(DISTINCT document ORDER BY document)::INT[] AS documents
FROM (SELECT fact AS owner, unnest(qualifiers) AS form, document FROM derived JOIN stated USING (triple)
    WHERE as_much) GROUP BY owner, form ORDER BY owner, form

--- file_names: all, in the order of their hashes
SELECT hash_name(name) AS hash, name, list(row ORDER BY row)::INT[] AS entities FROM called GROUP BY name
ORDER BY hash, name

--- file_name_words: with the entities of each, none of one that too many share
SELECT word, CASE WHEN count(*) <= $most THEN list(row ORDER BY row) ELSE [] END::INT[] AS entities
FROM (SELECT DISTINCT row, unnest(string_split(name, ' ')) AS word FROM called) GROUP BY word ORDER BY word

--- file_entity_forms: each name, with the documents that use it
SELECT entities.row::INT AS owner, form, list(DISTINCT document ORDER BY document)::INT[] AS documents
FROM (SELECT head_id AS entity_id, head_form AS form, document FROM stated
    UNION ALL SELECT tail_id, tail_form, document FROM stated) JOIN entities USING (entity_id)
GROUP BY ALL ORDER BY owner, form

--- file_relation_forms: each wording, with the documents that use it
SELECT relations.row::INT AS owner, relation_form AS form, list(DISTINCT document ORDER BY document)::INT[] AS documents
FROM stated JOIN relations USING (relation_id) GROUP BY ALL ORDER BY owner, form
