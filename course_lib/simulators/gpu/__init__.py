"""Models of a GPU that run anywhere, without a GPU and without a driver."""
