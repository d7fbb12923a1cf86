-- How many rows each stage refused for which reason, with the documents concerned and one example.
CREATE OR REPLACE VIEW rejects_by_reason AS
SELECT
    stage,
    reason,
    count(*) AS rejects,
    count(DISTINCT document_id) AS documents,
    arg_min(row_key, reject_id) AS example,
    arg_min(detail, reject_id) AS example_detail
FROM rejects
GROUP BY stage, reason
ORDER BY rejects DESC, stage, reason;
