"""The monitor inside other people's training loops: Lightning, Hugging Face, torchmetrics."""
