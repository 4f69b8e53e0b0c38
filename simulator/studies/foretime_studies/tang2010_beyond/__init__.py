"""Beyond Tang 2010: `similar` against perfect knowledge."""
