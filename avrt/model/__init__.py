"""Plain data shared by every layer: specifications, messages, events, commands, records."""
