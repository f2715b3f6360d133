"""Every claim of the paper's abstract, body and captions, judged on the runs of a grid."""
