-- The ontology layer with names: class memberships (property is null) and property values.
CREATE OR REPLACE VIEW individuals AS
SELECT
    instances.instance_id,
    subjects.name AS subject,
    regexp_extract(instances.class_iri, '[^/#]+$') AS class,
    regexp_extract(instances.property_iri, '[^/#]+$') AS property,
    coalesce(objects.name, instances.literal) AS value,
    instances.datatype,
    instances.confidence,
    chunks.document_id,
    instances.chunk_id,
    instances.start AS "start",
    instances."end" AS "end"
FROM instances
JOIN entities AS subjects ON subjects.entity_id = instances.subject_id
JOIN chunks USING (chunk_id)
LEFT JOIN entities AS objects ON objects.entity_id = instances.object_id
ORDER BY instances.instance_id;
