"""Which names denote one entity, which phrases one relation. Pure: nothing here knows of tables."""
