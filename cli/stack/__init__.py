"""The embedded stack: real servers from wheels, the API, the workers, and one screen over them."""
