"""Pictures of both languages: cards for steps and components, a layered layout, and SVG."""
