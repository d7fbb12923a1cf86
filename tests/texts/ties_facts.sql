select distinct d.text, h.name, h.type, r.name, coalesce(e.name, t.literal), e.type, t.qualifiers
from {triples} t join {entities} h on h.entity_id = t.head_id
left join {entities} e on e.entity_id = t.tail_id
join {relations} r on r.relation_id = t.relation_id
join (select unnest(raw_triple_ids) as raw_triple_id, triple_id from {triples}) using (triple_id)
join {raw_triples} using (raw_triple_id) join {chunks} using (chunk_id)
join {documents} d using (document_id) order by all
