"""Language models that read: the only modules that import torch and transformers."""
