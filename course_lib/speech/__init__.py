"""The case study: a speech recogniser, and where its time goes."""
