"""mmssl: learning from few, ambiguous or noisy labels, for OpenMMLab."""
