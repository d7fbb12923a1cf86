-- The graph of a snapshot for DuckDB, in parts that `graph` runs as they are needed.

--- documents: source, title, licence, labels, whom to name
CREATE TEMP TABLE document AS
SELECT document_id AS id, source, title, language, licence, access,
    coalesce($attribution) AS attribution
FROM documents ORDER BY id;

--- graph: entities, places and facts, each sorted by its key
CREATE TEMP MACRO gather(x) AS list_sort(list_distinct(x));

CREATE TEMP VIEW entity AS
SELECT entity_id AS id, name, type, surface_forms AS forms, coalesce(classes, []) AS classes
FROM entities LEFT JOIN (SELECT subject_id AS entity_id, list_sort(list(DISTINCT class_iri))
    AS classes FROM instances GROUP BY ALL) USING (entity_id) ORDER BY id;

CREATE TEMP TABLE stated AS
SELECT DISTINCT condensed_id, triples.confidence, raw_triples.modality AS mood,
    raw_triples.claim_id
FROM (SELECT condensed_id, unnest(derived_from) AS triple_id FROM condensed)
JOIN (SELECT triple_id, confidence, unnest(raw_triple_ids) AS raw_triple_id FROM triples)
    AS triples USING (triple_id) JOIN raw_triples USING (raw_triple_id);

CREATE TEMP TABLE spot AS SELECT DISTINCT claim_id, document_id, chunk_id, span.start AS first,
    span."end" AS last, span <> spans[-1] AS aside
FROM (SELECT claim_id, chunk_id, spans, unnest(spans) AS span FROM claims) AS claims
JOIN chunks USING (chunk_id);

-- Texts pass by the lists of what is cut from them; the other way round a join would hold them all.
CREATE TEMP VIEW place AS
WITH spots AS (SELECT document_id, first, last, min(chunk_id) AS chunk_id FROM spot
        WHERE claim_id IN (SELECT claim_id FROM stated) GROUP BY ALL),
    held AS (SELECT document_id, chunk_id, {'first': first, 'last': last} AS span,
        first >= start AND last <= "end" AS inside
        FROM spots JOIN (SELECT document_id, chunk_id, start, "end" FROM chunks) USING (document_id, chunk_id)),
    cut AS (SELECT document_id, start, text, unnest(spans) AS span FROM chunks
            JOIN (SELECT chunk_id, list(span) AS spans FROM held WHERE inside GROUP BY ALL) USING (chunk_id)
        UNION ALL SELECT document_id, 0 AS start, text, unnest(spans) AS span FROM documents
            JOIN (SELECT document_id, list(span) AS spans FROM held WHERE NOT inside GROUP BY ALL) USING (document_id))
SELECT document_id || '#char=' || span.first || ',' || span.last AS id, document_id, span.first AS first,
    span.last AS last, substring(text, span.first - start + 1, span.last - span.first) AS text
FROM cut ORDER BY document_id, first, last;

CREATE TEMP VIEW facts AS
WITH said AS (
    SELECT condensed_id, max(confidence) AS confidence, gather(list(mood)) AS moods,
        gather(list(document_id)) AS documents, gather(list(chunk_id)) AS chunks,
        gather(list(source)) AS sources, gather(list(licence)) AS licences,
        gather(list(attribution)) AS attributions,
        list_transform(gather(list({'aside': aside, 'document': document_id, 'first': first, 'last':
            last, 'chunk': chunk_id})), lambda p: {'document': p.document, 'first': p.first,
            'last': p.last, 'chunk': p.chunk}) AS places
    FROM (SELECT * EXCLUDE (aside), bool_and(aside) OVER (PARTITION BY condensed_id, document_id,
            chunk_id, first, last) AS aside FROM stated JOIN spot USING (claim_id))
    JOIN document ON document.id = document_id GROUP BY condensed_id
)
SELECT condensed_id AS id, standard_head_id AS head, ends.name AS head_name,
    coalesce(nullif(standard_relation, ''), relations.name) AS relation, relation_id,
    standard_tail_id AS tail, coalesce(tails.name, literal) AS tail_name, literal,
    concat_ws(' ', heads.name, CASE WHEN negated THEN deny(relations.name) ELSE relations.name END,
        coalesce(others.name, literal)) AS wording, negated, more_detailed_id,
    list_transform(map_entries(qualifiers), lambda q: q.key || ': ' || q.value) AS qualifiers,
    round(confidence, 4) AS confidence, CASE WHEN modality = 'fact' AND len(moods) > 0
        THEN 'possible' ELSE modality END AS modality, valid_from, valid_to,
    documents, chunks, sources, licences, attributions, places,
    places[1].document AS first_document, places[1].first AS start, places[1].last AS "end"
FROM condensed JOIN said USING (condensed_id) JOIN relations USING (relation_id)
JOIN entities AS heads ON heads.entity_id = head_id
JOIN entities AS ends ON ends.entity_id = standard_head_id LEFT JOIN entities AS others
ON others.entity_id = tail_id LEFT JOIN entities AS tails ON tails.entity_id = standard_tail_id;

--- quoted: facts with the words of the first place that states each, and the headings above it
CREATE TEMP VIEW quoted AS
SELECT facts.*, place.text AS sentence, section.path AS section
FROM facts
JOIN place ON place.document_id = first_document AND place.first = start AND place.last = "end"
ASOF LEFT JOIN section ON section.document_id = first_document AND section.start <= facts.start;

--- headings: of each document
SELECT document_id, list_transform(headings, lambda h: {'level': h.level, 'start': h.start,
    'text': substring(text, h.start + 1, h."end" - h.start)}) AS headings
FROM (SELECT document_id, text, list_filter(blocks, lambda b: b.kind = 'heading') AS headings
    FROM documents) WHERE len(headings) > 0

--- terms: RDF terms of values, below $base
CREATE OR REPLACE TEMP MACRO iri(x) AS '<$base' || x || '>';
CREATE OR REPLACE TEMP MACRO text(x) AS '"' || replace(replace(replace(replace(
    x, '\', '\\'), '"', '\"'), chr(10), '\n'), chr(13), '\r') || '"';
CREATE OR REPLACE TEMP MACRO day(x) AS CASE WHEN regexp_matches(x, '[0-9]{4}')
    THEN (try_strptime(x, ['%d %B %Y', '%B %d, %Y', '%Y-%m-%d'])::DATE)::VARCHAR END;
CREATE OR REPLACE TEMP MACRO qualified(x, role) AS flatten(list_transform(
    list_filter(x, lambda q: starts_with(q, role || ': ')),
    lambda q: string_split(substring(q, length(role) + 3), ' / ')));
CREATE OR REPLACE TEMP MACRO texts(x) AS list_transform(x, lambda t: text(t));
CREATE OR REPLACE TEMP MACRO named(x) AS CASE
    WHEN regexp_full_match(x, 'https?://[^\x00-\x20<>"{}|\\^`]+') THEN '<' || x || '>'
    ELSE text(x) END;

--- ontology: entities with the labels of their classes (`names` as identifiers), and its edges
CREATE TEMP VIEW individual AS
SELECT entity.*, coalesce(names, []) AS names, coalesce(labels, []) AS labels
FROM entity LEFT JOIN (
    SELECT id, list_sort(list(DISTINCT name)) AS names, list_sort(list(DISTINCT label)) AS labels
    FROM (SELECT id, unnest(classes) AS iri FROM entity) JOIN ontology_class USING (iri)
    GROUP BY id
) USING (id) ORDER BY id;
CREATE TEMP VIEW subclass AS
SELECT iri, parent FROM (SELECT iri, unnest(parents) AS parent FROM ontology_class)
WHERE parent IN (SELECT iri FROM ontology_class) ORDER BY ALL;
CREATE TEMP VIEW membership AS
SELECT id, iri FROM (SELECT id, unnest(classes) AS iri FROM entity)
WHERE iri IN (SELECT iri FROM ontology_class) ORDER BY ALL;

--- xml: what XML cannot hold becomes the replacement character
CREATE OR REPLACE TEMP MACRO xml(x) AS replace(replace(replace(replace(regexp_replace(x,
    '[\x00-\x08\x0b\x0c\x0e-\x1f\x{FFFE}\x{FFFF}]', chr(65533), 'g'),
    '&', '&amp;'), '<', '&lt;'), '>', '&gt;'), '"', '&quot;');
CREATE OR REPLACE TEMP MACRO data(k, x) AS
    coalesce('<data key="' || k || '">' || xml(x) || '</data>', '');
CREATE OR REPLACE TEMP MACRO listed(k, x) AS data(k, nullif(array_to_string(x, '; '), ''));

--- graphml_entities: nodes
SELECT '<node id="' || id || '">' || data('label', name) || data('type', type) || listed('forms', forms)
    || listed('classes', labels) || E'</node>\n' FROM individual

--- graphml_classes: nodes
SELECT '<node id="' || xml(iri) || '">' || data('label', label) || data('type', 'CLASS') || E'</node>\n'
FROM ontology_class

--- graphml_values: nodes
SELECT '<node id="value:' || xml(literal) || '">' || data('label', literal) || data('type', 'LITERAL')
    || E'</node>\n' FROM (SELECT DISTINCT literal FROM fact WHERE tail IS NULL ORDER BY literal)

--- graphml_facts: edges
SELECT '<edge id="' || id || '" source="' || head || '" target="' || coalesce(tail, 'value:' || xml(literal))
    || '">' || data('kind', 'fact')$about || E'</edge>\n' FROM fact

--- graphml_members: edges from individuals to their classes
SELECT '<edge source="' || xml(id) || '" target="' || xml(iri) || '">' || data('kind', 'instance of')
    || E'</edge>\n' FROM membership

--- graphml_subclasses: edges
SELECT '<edge source="' || xml(iri) || '" target="' || xml(parent) || '">' || data('kind', 'subclass of')
    || E'</edge>\n' FROM subclass

--- lance_chunks: passages with their documents
SELECT block.*, document_id, source, title, start, "end" FROM block JOIN chunks ON chunk_id = id
JOIN documents USING (document_id) ORDER BY id

--- lance_condensed: facts with their standard relations and the first place that states each
SELECT block.*, relation, relation_id, negated, modality, valid_from, valid_to, more_detailed_id,
    first_document AS document_id, source, section, start, "end"
FROM block LEFT JOIN fact USING (id) LEFT JOIN document ON document.id = first_document ORDER BY block.id

--- lance_entities: as they are
FROM block ORDER BY id

--- documents_jsonl: a line for each
SELECT document.*, text, metadata FROM document JOIN documents ON documents.document_id = id ORDER BY id

--- chunks_jsonl: a line for each
SELECT chunk_id AS id, document_id AS document, start, "end", text FROM chunks ORDER BY id

--- entities_jsonl: a line for each
FROM entity

--- facts_jsonl: a line for each
SELECT fact.* EXCLUDE (places), evidence FROM fact JOIN (
    SELECT fact_id, list({'document': document_id, 'start': first, 'end': last,
        'text': text, 'source': source, 'licence': licence, 'attribution': attribution}
        ORDER BY document_id, first, last) AS evidence
    FROM (SELECT id AS fact_id, unnest(places) AS spot FROM fact)
    JOIN place ON document_id = spot.document AND first = spot.first AND last = spot.last
    JOIN document ON document.id = document_id
    GROUP BY fact_id
) ON fact_id = id ORDER BY id
