"""Matrix products on many processes or machines, with torch.distributed: chapter 08."""
