# FPL's loss with the settings of the released code, which made the published numbers. The component's own defaults are
# the paper's text: no cap, the bound of Eq. 10, and no balance.
fpl_loss = dict(
    type='mmssl.FPLLoss', cum_prob=0.9, max_k=3, weight_mode='concave', weight_bound='top_k_plus_1', balance='ce_value')
