# Gradient surgery in a semi-supervised model: what labels teach is primary, what pseudo labels teach is auxiliary, and
# loses the part that goes against it. `shared` is filled in by the config: the models that both losses train.
rgd = dict(type='mmssl.RGDOptimWrapper', primary=['sup_*'], auxiliary=['unsup_*'])
