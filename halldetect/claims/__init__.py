"""Phase I: from a response to atomic claims that the response itself asserts."""
