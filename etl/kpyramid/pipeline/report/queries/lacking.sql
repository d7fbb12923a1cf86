-- Properties that facts state without fitting them: how many facts, and what one of them lacks.
SELECT unnest(string_split(stated[1], ', ')) AS label, count(*) AS facts, min(stated[2]) AS why
FROM (
    SELECT
        regexp_extract_all(detail, 'fits none of: ([^:]*): (.*)$', 1)
        || regexp_extract_all(detail, 'fits none of: ([^:]*): (.*)$', 2) AS stated
    FROM rejects
    WHERE stage = 'induce' AND contains(detail, ' fits none of: ')
)
GROUP BY label
