"""Checks of what a config says: batch, sampler, loop, branches, class counts, ignored label, crop size, options."""

import difflib
import re
from collections.abc import Mapping
from typing import Any

from mmengine.registry import MODELS

from mmssl.datasets.samplers import nearest_batch_sizes
from mmssl.functional.adr import DEFAULT_TOPK
from mmssl.utils.cli import keys_read
from mmssl.utils.values import closest_option

from .nodes import branches_of, find_heads, find_preprocessor, get, is_sequence, type_name, walk
from .report import Report, SourceSummary
from .sources import Source, config_scope, find_class

# Heads that hold a norm over globally pooled features.
POOLING_HEADS = re.compile('ASPP|PSP|UPer|Enc')
# What mmseg's LoadAnnotations can hold beside the ignored label.
MAX_CLASSES = 255
# Key, whether it must be whole, and the smallest value.
NUMBERS = (
    ('train_dataloader.num_workers', True, 0),
    ('val_dataloader.num_workers', True, 0),
    ('val_dataloader.batch_size', True, 1),
    ('test_dataloader.num_workers', True, 0),
    ('test_dataloader.batch_size', True, 1),
    ('train_cfg.max_iters', True, 1),
    ('train_cfg.max_epochs', True, 1),
    ('train_cfg.val_interval', True, 1),
    ('randomness.seed', True, 0),
    ('optim_wrapper.accumulative_counts', True, 1),
    ('optim_wrapper.optimizer.lr', False, 0),
    ('optim_wrapper.optimizer.weight_decay', False, 0),
)


def check_scope(cfg: Any, report: Report) -> None:
    """`default_scope` must name the library that the types without a scope belong to."""
    scope = cfg.get('default_scope')
    if scope is None:
        bare = next(
            (node['type'] for _, node in walk(cfg.get('model'), 'model') if _is_bare(node['type'])),
            None,
        )
        if bare is not None:
            report.error(
                'default_scope', f"is not set, so the type {bare!r} is not found; allowed: 'mmseg', 'mmpretrain'"
            )
    elif not isinstance(scope, str):
        report.error('default_scope', f"must be the name of a library such as 'mmseg', got {scope!r}")
    elif scope == 'mmssl':
        report.error(
            'default_scope',
            "is 'mmssl', where the types of mmseg and mmpretrain are not found; allowed: 'mmseg', 'mmpretrain', with "
            'the types of mmssl written as `mmssl.X`',
        )


def _is_bare(kind: Any) -> bool:
    return isinstance(kind, str) and '.' not in kind


def check_names(cfg: Any, report: Report) -> None:
    """Names that mmengine passes over in silence, or stumbles over without naming them."""
    read = keys_read()
    for name in cfg:
        if name in read:
            continue
        # Any name may be a variable of the file (`train_pipeline`), so only one that is almost a setting is reported.
        close = difflib.get_close_matches(name, read, n=1, cutoff=0.8)
        if close and not name.endswith('_pipeline'):
            report.warn(name, f'is read by nothing, so it changes nothing; is {close[0]!r} meant?')
    hooks = cfg.get('default_hooks')
    named = list(hooks.items()) if isinstance(hooks, Mapping) else []
    if hooks is not None and not isinstance(hooks, Mapping):
        report.error('default_hooks', f'must be a dict of hooks by name, got {hooks!r}')
    listed, schedulers = cfg.get('custom_hooks'), cfg.get('param_scheduler')
    if listed is not None and not is_sequence(listed):
        report.error('custom_hooks', f"must be a list of dicts, such as [dict(type='EMAHook')], got {listed!r}")
    nodes = [(f'default_hooks.{name}', hook) for name, hook in named if hook is not None]
    for name, entries in (('custom_hooks', listed), ('param_scheduler', schedulers)):
        nodes += [(f'{name}.{i}', entry) for i, entry in enumerate(entries if is_sequence(entries) else [])]
    for key, node in nodes:
        if not isinstance(node, Mapping):
            if isinstance(node, (str, int, float, list, tuple)):  # an object that was built already is allowed
                report.error(key, f'must be a dict with `type`, got {node!r}')
        elif 'type' not in node:
            close = difflib.get_close_matches(key.rpartition('.')[2], [name for name, _ in named if name not in key])
            report.error(key, f'has no `type`, got {dict(node)}' + (f'; is {close[0]!r} meant?' if close else ''))


def check_numbers(cfg: Any, report: Report) -> None:
    """Numbers in quotes and the like, of which mmengine and torch would not say where they are."""
    for key, whole, smallest in NUMBERS:
        value = get(cfg, key)
        kind = int if whole else (int, float)
        if value is not None and (isinstance(value, bool) or not isinstance(value, kind) or not value >= smallest):
            report.error(key, f'must be {"an integer" if whole else "a number"} >= {smallest}, got {value!r}')


def check_batch(cfg: Any, sources: list[Source], report: Report) -> list[int] | None:
    """Batch size, sampler and source ratio must fit together.

    Returns:
        Images of each source in the batch of one process; None if the batch cannot be composed.
    """
    loader = cfg.get('train_dataloader')
    batch_size = loader.get('batch_size')
    if not isinstance(batch_size, int) or isinstance(batch_size, bool) or batch_size < 1:
        report.error('train_dataloader.batch_size', f'must be an integer >= 1, got {batch_size!r}')
        return None
    sampler = loader.get('sampler') or {}
    is_multi_source = isinstance(get(loader, 'dataset.sources'), Mapping)
    if sampler.get('batch_size') not in (None, batch_size):
        report.error(
            'train_dataloader.sampler.batch_size',
            f'is {sampler["batch_size"]}, but train_dataloader.batch_size is {batch_size}; leave it out, the sampler '
            'does not need it',
        )
    if 'source_ratio' not in sampler:
        if is_multi_source:
            report.error(
                'train_dataloader.sampler.type',
                f'is {sampler.get("type")!r}, which knows no sources, so batches would lack some of '
                f'{[s.name for s in sources]}; allowed: mmssl.MultiSourceSampler with `source_ratio`',
            )
            return None
        return [batch_size]
    ratio = sampler['source_ratio']
    if not is_sequence(ratio) or not all(isinstance(r, int) and not isinstance(r, bool) and r > 0 for r in ratio):
        report.error('train_dataloader.sampler.source_ratio', f'must be a list of integers >= 1, got {ratio!r}')
        return None
    ratio = list(ratio)
    if not is_multi_source:
        nested = get(loader, 'dataset.datasets')
        count = len(nested) if is_sequence(nested) else 1
        names = [str(i) for i in range(count)]
    else:
        count, names = len(sources), [s.name for s in sources]
    if len(ratio) != count:
        report.error(
            'train_dataloader.sampler.source_ratio',
            f'has {len(ratio)} numbers, {ratio}, but train_dataloader.dataset has {count} sources: {names}',
        )
        return None
    unit = sum(ratio)
    if batch_size % unit:
        nearest = ' and '.join(map(str, nearest_batch_sizes(batch_size, ratio)))
        report.error(
            'train_dataloader.batch_size',
            f'{batch_size} is not a multiple of {unit}, the sum of train_dataloader.sampler.source_ratio {ratio}; '
            f'nearest valid: {nearest}',
        )
        return None
    per_gpu = [batch_size // unit * r for r in ratio]
    pooling = next((key for key, head in find_heads(cfg.get('model')) if POOLING_HEADS.search(type_name(head))), None)
    if is_multi_source and pooling is not None and 1 in per_gpu:
        report.warn(
            'train_dataloader.batch_size',
            f'gives 1 image per GPU to {names[per_gpu.index(1)]!r}; {pooling} pools an image to one pixel, of which '
            'BatchNorm cannot train on a single one: take 2 at least, or another norm',
        )
    unlabeled = sum(n for n, s in zip(per_gpu, sources, strict=False) if not s.is_labeled) if is_multi_source else 0
    mix = get(cfg, 'model.semi_train_cfg.mix')
    # Adaptive CutMix takes its second image from elsewhere.
    if is_multi_source and mix is not None and type_name(mix) != 'AdaptiveCutMix' and unlabeled % 2:
        report.error(
            'model.semi_train_cfg.mix',
            f'mixes the unlabeled images of a batch in pairs, but there are {unlabeled} per GPU; change '
            'train_dataloader.batch_size or train_dataloader.sampler.source_ratio so that their number is even',
        )
    elif is_multi_source:
        _check_units(cfg, unlabeled, sum(r for r, s in zip(ratio, sources, strict=False) if not s.is_labeled), report)
    return per_gpu if is_multi_source else [batch_size]


def _check_units(cfg: Any, unlabeled: int, share: int, report: Report) -> None:
    """What a piece takes for one unit of the sampler must divide the unlabeled images of a process."""
    options = 'model.semi_train_cfg'
    mix = get(cfg, f'{options}.mix')
    if type_name(mix) == 'AdaptiveCutMix' and get(mix, 'donor') == 'batch' and unlabeled == 1:
        report.error(
            f'{options}.mix.donor',
            "is 'batch', which takes another unlabeled image of the same batch, but there is 1 per GPU; change "
            "train_dataloader.batch_size or train_dataloader.sampler.source_ratio, or take donor='dataset'",
        )
    for key, count, share_of_unit, what in (
        (f'{options}.mix.pairs_per_unit', unlabeled // 2, share // 2, f'{unlabeled // 2} pairs of the '),
        (f'{options}.feature_perturbation.images_per_unit', unlabeled, share, ''),
    ):
        value = get(cfg, key)
        if isinstance(value, int) and value > 0 and count and count % value:
            report.error(
                key,
                f'is {value}, which does not divide the {what}{unlabeled} unlabeled images per GPU; '
                f'train_dataloader.sampler.source_ratio has {max(share_of_unit, 1)} in a unit',
            )


def loop_of(cfg: Any) -> tuple[str | None, int | None]:
    """`'epoch'` or `'iter'` (None: another loop, or none), and the length of the run in that unit."""
    train_cfg = cfg.get('train_cfg')
    if not isinstance(train_cfg, Mapping):
        return None, None
    name = type_name(train_cfg)
    if name:
        kind = {'EpochBasedTrainLoop': 'epoch', 'IterBasedTrainLoop': 'iter'}.get(name)
    else:
        kind = 'epoch' if train_cfg.get('by_epoch', True) else 'iter'
    length = train_cfg.get({'epoch': 'max_epochs', 'iter': 'max_iters'}.get(kind or '', ''))
    return kind, length if isinstance(length, int) else None


def check_loop(cfg: Any, report: Report) -> None:
    """The sampler must end where the loop waits for its end, and go on where it does not."""
    kind, _ = loop_of(cfg)
    sampler = get(cfg, 'train_dataloader.sampler', {})
    name = type_name(sampler)
    endless = name == 'InfiniteSampler' or (name == 'MultiSourceSampler' and sampler.get('infinite', True))
    if kind == 'epoch' and endless:
        allowed = 'infinite=False' if name == 'MultiSourceSampler' else "type='DefaultSampler'"
        report.error(
            'train_dataloader.sampler',
            f'{name} never ends, so the epoch-based train_cfg would never reach epoch 2; allowed: '
            f"train_dataloader.sampler.{allowed}, or train_cfg.type='IterBasedTrainLoop'",
        )
    if kind == 'iter' and name == 'MultiSourceSampler' and not endless:
        report.warn(
            'train_dataloader.sampler.infinite',
            'is False under IterBasedTrainLoop, which sleeps 2 s whenever the sampler ends; leave it at True',
        )
    checkpoint = get(cfg, 'default_hooks.checkpoint')
    if kind == 'iter' and isinstance(checkpoint, Mapping) and checkpoint.get('by_epoch', True):
        report.warn(
            'default_hooks.checkpoint.by_epoch',
            'is True (its default) under an iteration-based train_cfg, so no checkpoint is written before the end; '
            'set it to False',
        )


def model_class(cfg: Any) -> type | None:
    """The class of `model.type`, or None if it cannot be found (building the model will say why)."""
    with config_scope(cfg):
        try:
            return find_class(MODELS, get(cfg, 'model.type'))
        except Exception:
            return None


def check_branches(cfg: Any, report: Report) -> None:
    """The pipelines must make the branches that the model reads, and every source must declare the same ones."""
    found: list[tuple[str, list[str], list[str]]] = []
    for key, node in walk(get(cfg, 'train_dataloader.dataset'), 'train_dataloader.dataset'):
        if node.get('pipeline') is not None:
            found += branches_of(node['pipeline'], f'{key}.pipeline')
    found = list({key: (key, declared, made) for key, declared, made in found}.values())
    is_semi = isinstance(get(cfg, 'model.segmentor'), Mapping) or isinstance(get(cfg, 'model.classifier'), Mapping)
    if not is_semi and not hasattr(model_class(cfg), 'branches_read'):
        if found:
            report.error(
                found[0][0],
                f'makes branches {found[0][2]}, but model.type {type_name(cfg.get("model"))!r} reads none; allowed: a '
                'semi-supervised model of mmssl, or a pipeline without MultiBranch',
            )
        return
    required = _required_branches(cfg)
    if not found:
        report.error(
            'train_dataloader.dataset',
            f'no pipeline ends in mmssl.MultiBranch, but model.type {type_name(cfg["model"])!r} reads branches '
            f'{list(required)}',
        )
        return
    made_somewhere = {name for _, _, made in found for name in made}
    for name in required:
        if name not in made_somewhere:
            close = difflib.get_close_matches(name, made_somewhere, n=1)
            hint = f'; is {close[0]!r} meant to be it?' if close else ''
            # The student of a mean teacher can learn from the teacher's own view where there is no other.
            if not close and name in _strong_branches(cfg) and 'unsup_weak' in made_somewhere:
                hint = "; add it to MultiBranch, or set model.semi_train_cfg.strong_branches=['unsup_weak']"
            report.error(
                'train_dataloader.dataset',
                f'no pipeline makes the branch {name!r} that the model needs; found {sorted(made_somewhere)}{hint}',
            )
    for key, declared, made in found:
        unknown = [name for name in made if name not in declared]
        if unknown:
            report.error(f'{key}.branches', f'lacks {unknown}, which it makes; found {declared}')
        if declared != found[0][1]:
            report.error(
                f'{key}.branches', f'is {declared}, but {found[0][0]}.branches is {found[0][1]}: make them equal'
            )


def _required_branches(cfg: Any) -> tuple[str, ...]:
    """Branches that the model reads with its options; those of any options where the options are wrong."""
    kind = model_class(cfg)
    try:
        return kind.branches_read(get(cfg, 'model'))
    except (AttributeError, ValueError):
        return getattr(kind, 'REQUIRED_BRANCHES', ())


def _strong_branches(cfg: Any) -> tuple[str, ...]:
    """The views that the student learns from, where the model class has that option."""
    defaults = getattr(model_class(cfg), 'TRAIN_DEFAULTS', {})
    if 'strong_branches' not in defaults:
        return ()
    return tuple(get(cfg, 'model.semi_train_cfg.strong_branches') or defaults['strong_branches'])


def check_labels_loaded(cfg: Any, sources: list[Source], report: Report) -> None:
    """A source that feeds the supervised loss of a segmentor must load its label maps."""
    if all(key.endswith('.head') for key, _ in find_heads(cfg.get('model'))):
        return  # The labels of classification come with the list.
    for source in sources:
        for leaf in source.leaves:
            if source.is_labeled and not leaf.has_labels:
                report.error(
                    leaf.key_of_pipeline,
                    'loads no labels (LoadAnnotations), but the supervised loss needs them',
                )


def check_heads(cfg: Any, classes: list[str] | None, classes_key: str, report: Report) -> None:
    """Class counts and class weights of every head must fit the data."""
    model = cfg.get('model')
    is_semi = isinstance(get(model, 'segmentor'), Mapping)
    for key, head in find_heads(model):
        count = head.get('num_classes')
        if count is None:
            continue
        report.facts.append(f'{key}: {count} classes')
        if classes is not None and count != len(classes):
            shown = ', '.join(classes[:5]) + (', ...' if len(classes) > 5 else '')
            report.error(
                f'{key}.num_classes',
                f'is {count}, but {classes_key} has {len(classes)} classes ({shown}); make them equal',
            )
        out_channels = head.get('out_channels')
        binary = out_channels == 1 and count == 2 and not is_semi
        if out_channels is not None and out_channels != count and not binary:
            allowed = f'{count}' if is_semi or count != 2 else '2, or 1 for a sigmoid'
            report.error(f'{key}.out_channels', f'is {out_channels}, with num_classes={count}; allowed: {allowed}')
        for loss_key, loss in walk(head.get('loss_decode'), f'{key}.loss_decode'):
            weight = loss.get('class_weight')
            if is_sequence(weight) and len(weight) != (out_channels or count):
                report.error(
                    f'{loss_key}.class_weight',
                    f'has {len(weight)} weights for the {out_channels or count} classes of {key}',
                )
        if isinstance(out_channels or count, int):  # what else it is, the head says when it is built
            _check_losses(key, head, out_channels or count, report)


def _check_losses(key: str, head: Any, num_logits: int, report: Report) -> None:
    """Numbers in the losses of a head that cannot be larger than, or differ from, the number of its logits."""
    for name in ('loss', 'loss_decode', 'loss_cls'):
        for loss_key, loss in walk(head.get(name), f'{key}.{name}'):
            kind, count = type_name(loss), loss.get('num_classes')
            topk = loss.get('topk', DEFAULT_TOPK)
            if kind == 'ADRLoss' and isinstance(topk, int) and topk > num_logits:
                report.error(
                    f'{loss_key}.topk',
                    f'is {topk}, but {key} has {num_logits} classes; allowed: 1 to {num_logits}, or None',
                )
            if kind == 'OnlineLabelSmoothLoss' and isinstance(count, int) and count != num_logits:
                report.error(
                    f'{loss_key}.num_classes', f'is {count}, but {key} has {num_logits} classes; make them equal'
                )


def check_ignore_index(cfg: Any, sources: list[Source], report: Report) -> None:
    """Heads, padding and data must agree on the label that is no class."""
    heads = [
        (key, int(head.get('ignore_index', 255))) for key, head in find_heads(cfg.get('model')) if 'num_classes' in head
    ]
    # A classification head has no pixels to ignore.
    heads = [(key, value) for key, value in heads if not key.endswith('.head')]
    if not heads:
        return
    first_key, expected = heads[0]
    has_labels = any(leaf.has_labels for source in sources for leaf in source.leaves)
    for key, head in find_heads(cfg.get('model')):
        count = head.get('num_classes')
        if has_labels and isinstance(count, int) and count > MAX_CLASSES:
            report.error(
                f'{key}.num_classes',
                f'is {count}, but label maps are loaded with 8 bits: classes 0 to {MAX_CLASSES - 1}, and 255 for none',
            )
    for key, value in heads[1:]:
        if value != expected:
            report.error(
                f'{key}.ignore_index', f'is {value}, but {first_key}.ignore_index is {expected}; make them equal'
            )
    preprocessor = find_preprocessor(cfg.get('model'))
    if preprocessor is not None:
        pad = preprocessor[1].get('seg_pad_val', 255)
        if pad != expected:
            report.error(
                f'{preprocessor[0]}.seg_pad_val',
                f'is {pad}, but {first_key}.ignore_index is {expected}, so padding would be a class; make them equal',
            )
    for source in sources:
        for leaf in source.leaves:
            if not leaf.has_labels:
                continue
            if leaf.ignore_index != expected:
                report.error(
                    f'{leaf.key}.ignore_index',
                    f'is {leaf.ignore_index}, but {first_key}.ignore_index is {expected}; make them equal',
                )
            for key, transform in walk(leaf.pipeline, leaf.key_of_pipeline):
                pad_val = transform.get('pad_val')
                values = {
                    'pad_val.seg': pad_val.get('seg') if isinstance(pad_val, Mapping) else None,
                    'seg_pad_val': transform.get('seg_pad_val'),
                }
                for name, value in values.items():
                    if value is not None and value != expected:
                        report.error(
                            f'{key}.{name}', f'is {value}, but {first_key}.ignore_index is {expected}; make them equal'
                        )


def check_crop_size(cfg: Any, sources: list[Source], report: Report) -> None:
    """Crops and the padded size of a batch must be the same, or padding is trained on or the batch does not stack."""
    preprocessor = find_preprocessor(cfg.get('model'))
    size = None if preprocessor is None else _pair(preprocessor[1].get('size'))
    crops: dict[str, tuple[int, int]] = {}
    for source in sources:
        for leaf in source.leaves:
            for key, transform in walk(leaf.pipeline, leaf.key_of_pipeline):
                crop = _pair(transform.get('crop_size'))
                if type_name(transform) == 'RandomCrop' and crop is not None:
                    crops[f'{key}.crop_size'] = crop
    for key, crop in crops.items():
        if preprocessor is not None and size is not None and crop != size:
            report.error(
                f'{preprocessor[0]}.size',
                f'is {size}, but {key} is {crop} (both height, width); make them equal, or leave `size` out',
            )
    if len(set(crops.values())) > 1:
        report.warn('train_dataloader.dataset', f'sources are cropped to different sizes: {crops}')


def _pair(value: Any) -> tuple[int, int] | None:
    if isinstance(value, int):
        return (value, value)
    return (int(value[0]), int(value[1])) if is_sequence(value) and len(value) == 2 else None


def check_semi_options(cfg: Any, report: Report) -> None:
    """`semi_train_cfg` may only hold what the model class lists."""
    options = get(cfg, 'model.semi_train_cfg')
    allowed = getattr(model_class(cfg), 'TRAIN_DEFAULTS', None)
    if not isinstance(options, Mapping) or not allowed:
        return
    for name in options:
        if name not in allowed:
            close = closest_option(str(name), allowed)
            hint = f' Did you mean {close!r}?' if close else ''
            report.error(f'model.semi_train_cfg.{name}', f'is not known; allowed: {", ".join(sorted(allowed))}.{hint}')


def iterations_per_epoch(cfg: Any, sources: list[Source], per_gpu: list[int] | None, world_size: int) -> int | None:
    """Iterations of one pass over the source that needs most; None if the batch cannot be composed."""
    drawn = _drawn_per_epoch(cfg, sources, per_gpu, world_size)
    return None if drawn is None or per_gpu is None else -(-sum(drawn) // (sum(per_gpu) * world_size))


def _drawn_per_epoch(
    cfg: Any, sources: list[Source], per_gpu: list[int] | None, world_size: int
) -> list[int] | None:
    """Images that all processes draw from each source in an epoch, whose last batch may be smaller; as the sampler."""
    if per_gpu is None or len(per_gpu) != len(sources) or not all(source.length for source in sources):
        return None
    ratio = [1]
    if len(sources) > 1 or 'source_ratio' in (get(cfg, 'train_dataloader.sampler') or {}):
        ratio = list(get(cfg, 'train_dataloader.sampler.source_ratio'))
    units = max(-(-source.length // r) for source, r in zip(sources, ratio, strict=True))
    units = -(-units // world_size) * world_size  # each process draws as many
    return [units * r for r in ratio]


def check_unsup_begin(
    cfg: Any, sources: list[Source], per_gpu: list[int] | None, world_size: int, report: Report
) -> None:
    """The unsupervised loss must begin before training ends."""
    key = 'model.semi_train_cfg.unsup_begin'
    begin, ramp = (get(cfg, f'model.semi_train_cfg.{name}', 0) for name in ('unsup_begin', 'unsup_ramp'))
    kind, length = loop_of(cfg)
    epoch = iterations_per_epoch(cfg, sources, per_gpu, world_size) if kind == 'epoch' else 1
    if not all(isinstance(value, int) for value in (begin, ramp, length, epoch)):
        return
    total = length * epoch
    found = f'train_cfg.max_iters is {total}'
    if kind == 'epoch':
        found = f'train_cfg.max_epochs is {length}, with {epoch} iterations each {total} in all'
    if begin >= total > 0:
        report.error(
            key, f'is {begin}, but {found}, so the unsupervised loss would never begin; allowed: 0 to {total - 1}'
        )
    elif begin + ramp > total:
        report.warn(
            'model.semi_train_cfg.unsup_ramp',
            f'is {ramp} and {key} is {begin}, together {begin + ramp}, but {found}, so the unsupervised loss never '
            'reaches its full weight',
        )


def summarize_sources(
    cfg: Any, sources: list[Source], per_gpu: list[int] | None, world_size: int
) -> list[SourceSummary]:
    """Images, batch share and passes of each training source."""
    summaries = [SourceSummary(source.name, source.key, source.length) for source in sources]
    drawn = _drawn_per_epoch(cfg, sources, per_gpu, world_size)
    if per_gpu is None or drawn is None:
        return summaries
    kind, length = loop_of(cfg)
    for summary, count, images in zip(summaries, per_gpu, drawn, strict=True):
        summary.per_gpu, summary.global_batch = count, count * world_size
        summary.passes_per_epoch = images / summary.images
        if length is not None:
            each = images if kind == 'epoch' else count * world_size
            summary.passes_per_run = length * each / summary.images
    return summaries
