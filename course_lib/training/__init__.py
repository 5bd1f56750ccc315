"""Training on many ranks: data, tensor and pipeline parallel, on chapter 08's wire: interlude C."""
