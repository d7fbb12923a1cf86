"""From files to records: decoding by a stated rule, one reader per format."""
