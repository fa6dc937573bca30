# Dash (ICML 2021), the semi_train_cfg of mmssl.PseudoLabelClassifier: a pseudo label counts where its loss is below a
# threshold that falls by 1.27 every 10 epochs of 1024 iterations; sharpened targets until it has reached 0.05, hard
# ones afterwards. The first 2048 iterations learn from labels alone, and their loss is where the threshold starts.
dash = dict(
    threshold=dict(
        type='mmssl.DashThreshold', base=1.0001, gamma=1.27, minimum=0.05, interval=10240, temperature=0.5),
    unsup_begin=2048,
    target='soft',
    normalize='batch')
