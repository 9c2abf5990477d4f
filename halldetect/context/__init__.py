"""The context library: what of a source is shown to the encoder, and at which granularity."""
