"""Where an image of this process stands in the batch of all processes together."""

from mmengine.dist import get_dist_info


def global_places(count: int, units: int) -> list[int]:
    """Places of this process's images, the same whatever the number of processes that share the batch.

    ``mmssl.MultiSourceSampler`` deals units (so many labeled and so many unlabeled images) to the ranks in turn: local
    unit u of rank r is global unit r + W u.

    Args:
        count: Images of one kind in this process.
        units: Units in this process's batch, >= 1. If they do not divide ``count``, each image is a unit of its own:
            places are still unique over the ranks, but depend on how many there are.

    Returns:
        ``count`` numbers.
    """
    rank, world_size = get_dist_info()
    share = count // units if count % units == 0 and count else 1
    return [(rank + world_size * (i // share)) * share + i % share for i in range(count)]
