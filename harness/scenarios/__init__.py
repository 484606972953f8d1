"""What a scenario needs and states: the card's state at the start, promises of documents, tables of cells."""
