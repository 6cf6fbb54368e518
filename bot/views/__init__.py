"""Pure: domain value -> text entities and keyboard. Escaping and truncation happen here, once."""
