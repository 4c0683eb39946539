"""R-CLA training: models that tolerate depth-wise KV sharing."""
