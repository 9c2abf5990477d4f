"""Plain text: sentences, words and numbers, each with its place in the original characters."""
